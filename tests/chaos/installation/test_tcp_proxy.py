"""The proxy passes on what is sent, and breaks connections in each of its ways."""

from __future__ import annotations

import select
import socket
import socketserver
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.harness.waiting import PATIENCE

from .tcp_proxy import TcpProxy


class Echo(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        for line in self.rfile:
            self.wfile.write(line)


@pytest.fixture
def proxy() -> Iterator[TcpProxy]:
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        path = Path(folder) / "echo.sock"
        with socketserver.ThreadingUnixStreamServer(str(path), Echo) as server:
            server.daemon_threads = True
            threading.Thread(target=server.serve_forever, args=[0.05], daemon=True).start()
            made = TcpProxy(path)
            yield made
            made.close()
            server.shutdown()


def connected(proxy: TcpProxy) -> socket.socket:
    return socket.create_connection(("127.0.0.1", proxy.port), PATIENCE)


def answer(client: socket.socket) -> bytes:
    client.sendall(b"hello\n")
    return client.recv(100)


def is_healed(proxy: TcpProxy) -> bool:
    proxy.heal()
    with connected(proxy) as client:
        return answer(client) == b"hello\n"


def test_a_cut_resets_connections_and_new_ones_as_does_a_server_that_is_away(proxy: TcpProxy) -> None:
    with connected(proxy) as client:
        assert answer(client) == b"hello\n"
        assert proxy.passed == 2 * len(b"hello\n")
        proxy.refuses = True
        assert proxy.cut() == 1
        with pytest.raises(ConnectionResetError):
            client.recv(100)
    with pytest.raises(ConnectionError), connected(proxy) as client:
        answer(client)
    assert is_healed(proxy)
    proxy.server = Path("/nonexistent/server.sock")
    with pytest.raises(ConnectionError), connected(proxy) as client:
        answer(client)


def test_a_delayed_or_half_open_connection_hears_nothing_until_it_is_healed(proxy: TcpProxy) -> None:
    with connected(proxy) as slow:
        answer(slow)
        proxy.delay = 3600
        assert hears_nothing(slow)
        assert is_healed(proxy)
    with connected(proxy) as before:
        answer(before)
        proxy.silent = True
        with connected(proxy) as late:
            assert hears_nothing(before, late)
            proxy.heal()
            for each in (before, late):
                with pytest.raises(ConnectionResetError):
                    each.recv(100)
    assert is_healed(proxy)


def hears_nothing(*clients: socket.socket) -> bool:
    for client in clients:
        client.sendall(b"hello\n")
    return select.select(clients, [], [], 0.3)[0] == []
