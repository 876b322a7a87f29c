"""A web process that is asked to end ends, and whoever listened is told, so as to come again to the next one."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable
from typing import Any

import httpx
import pytest
import yaml
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect
from websockets.typing import Origin

from config.web.__main__ import GRACE
from tests.factories import MEMBER, ann, make_gate, make_team, make_user
from tests.factories.tokens import make_token
from tests.harness.horizon import reached
from tests.harness.services import Service, free_port, wait_for_http
from tests.harness.session import ROOT
from tests.harness.signed_in_clients import session_of
from tests.harness.waiting import PATIENCE

SHORT_GRACE = """
import sys
from config.web import __main__ as web
web.GRACE, sys.argv[1:] = 1, ["--port", "{}"]
web.main()
"""
COMPOSE = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]


class Listener(threading.Thread):
    """One request in the background, read to its end."""

    def __init__(self, client: httpx.Client, path: str) -> None:
        super().__init__(daemon=True)
        self.client, self.path = client, path
        self.begun = threading.Event()
        self.fault: Exception | None = None
        self.answer = ""
        self.start()

    def run(self) -> None:
        try:
            with self.client.stream("GET", self.path) as response:
                for piece in response.iter_text():
                    self.answer += piece
                    self.begun.set()
        except httpx.HTTPError as error:
            self.fault = error


def test_a_web_process_with_open_streams_polls_and_sockets_ends_at_once_and_tells_each(
    start_web: Callable[..., tuple[Service, str]],
) -> None:
    """It went on for as long as one reader of events stayed, until it was killed."""
    service, base = start_web()
    gate = make_gate(team=make_team(may=MEMBER))
    token = make_token(ann(gate.team), team=gate.team, agent=gate.run.plan.agent)[1]
    reached()
    with httpx.Client(base_url=base, headers={"Authorization": f"Bearer {token}"}, timeout=PATIENCE) as client:
        stream = Listener(client, f"/api/events/stream?subject=run:{gate.run_id}")
        assert stream.begun.wait(PATIENCE)
        poll = Listener(client, f"/api/gates/{gate.pk}/outcome?wait=60")
        headers = {"Cookie": f"sessionid={session_of(make_user('Sol Socket'))}"}
        with connect(base.replace("http", "ws") + "/ws/", origin=Origin(base), additional_headers=headers) as socket:
            assert socket.ping().wait(PATIENCE)
            poll.join(0.5)
            assert poll.is_alive()
            service.process.send_signal(signal.SIGTERM)
            with pytest.raises(ConnectionClosed) as closed:
                socket.recv(PATIENCE)
            assert closed.value.rcvd is not None
            assert closed.value.rcvd.code == 1012  # RFC 6455: the service restarts
        service.process.wait(PATIENCE)
        for listener in (stream, poll):
            listener.join(PATIENCE)
            assert not listener.is_alive()
            assert listener.fault is None, f"{listener.path} was cut: {listener.fault}"
    assert '"status":"open"' in poll.answer.replace(" ", ""), "a poll is answered as if its time were over"
    assert "timeout graceful shutdown exceeded" not in service.log
    assert "Traceback" not in service.log


def test_what_does_not_end_by_itself_is_cut_off_within_the_grace(start_service: Callable[..., Service]) -> None:
    import socket

    port = free_port()
    base = f"http://127.0.0.1:{port}"
    service = start_service("web", [sys.executable, "-c", SHORT_GRACE.format(port)])
    wait_for_http(service, f"{base}/healthz")
    with socket.create_connection(("127.0.0.1", httpx.URL(base).port or 0)) as half:
        half.sendall(b"POST /accounts/login/ HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100\r\n\r\nhalf")
        httpx.get(f"{base}/healthz")
        service.process.send_signal(signal.SIGTERM)
        service.process.wait(PATIENCE)
    assert "timeout graceful shutdown exceeded" in service.log


def test_the_container_is_given_the_time_that_its_process_takes() -> None:
    assert int(COMPOSE["web"]["stop_grace_period"].removesuffix("s")) >= GRACE + 5


def test_nothing_starts_the_web_process_but_by_its_own_command() -> None:
    """Its arguments stood in five places, and one of them alone bounded its end."""
    starts: dict[str, Any] = {"docker-compose.yml": COMPOSE["web"]["command"]}
    assert starts["docker-compose.yml"][:3] == ["python", "-m", "config.web"]
    for path in ("Dockerfile", "docker-compose.yml", "config/local/stack.py", "docs/install.md"):
        text = (ROOT / path).read_text()
        assert "uvicorn" not in text, path  # which would be without the bounds of config.web.wire
        assert "config.web" in text, path
