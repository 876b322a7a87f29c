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
    """Says what it hears."""

    def handle(self) -> None:
        for line in self.rfile:
            self.wfile.write(line)


@pytest.fixture
def proxy() -> Iterator[TcpProxy]:
    """A proxy before a server that says what it hears."""
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


def said(client: socket.socket) -> bytes:
    client.sendall(b"hello\n")
    return client.recv(100)


def answer(proxy: TcpProxy) -> bytes:
    with connected(proxy) as client:
        return said(client)


def test_what_is_sent_arrives_and_its_answer_too(proxy: TcpProxy) -> None:
    with connected(proxy) as client:
        assert said(client) == b"hello\n"
        assert proxy.passed == 2 * len(b"hello\n")


def test_a_cut_resets_connections_and_new_ones_until_it_is_healed(proxy: TcpProxy) -> None:
    with connected(proxy) as client:
        said(client)
        proxy.refuses = True
        assert proxy.cut() == 1
        with pytest.raises(ConnectionResetError):
            client.recv(100)
    with pytest.raises(ConnectionError):
        answer(proxy)
    proxy.heal()
    assert answer(proxy) == b"hello\n"


def test_a_half_open_connection_hears_nothing_until_it_is_reset(proxy: TcpProxy) -> None:
    with connected(proxy) as client, connected(proxy) as other:
        said(client)
        said(other)
        proxy.silent = True
        client.sendall(b"hello\n")
        with connected(proxy) as late:
            late.sendall(b"hello\n")
            assert select.select([client, other, late], [], [], 0.3)[0] == []
            proxy.heal()
            for each in (client, other, late):
                with pytest.raises(ConnectionResetError):
                    each.recv(100)
    assert answer(proxy) == b"hello\n"


def test_a_delay_holds_each_block_back(proxy: TcpProxy) -> None:
    with connected(proxy) as client:
        said(client)
        proxy.delay = 3600
        client.sendall(b"hello\n")
        assert select.select([client], [], [], 0.3)[0] == []
        proxy.heal()
        assert answer(proxy) == b"hello\n"


def test_a_server_that_is_away_is_a_reset(proxy: TcpProxy) -> None:
    proxy.server = Path("/nonexistent/server.sock")
    with pytest.raises(ConnectionError):
        answer(proxy)
