"""Commands and fetches of the assistant: no shell, no secrets, nothing inside, bounded, and nothing of them stays."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import brotli  # type: ignore[import-untyped]
import psutil
import pytest

from agents.examples.assistant import tools
from agents.examples.assistant.calls import Call, assess_calls
from agents.examples.assistant.tools import fetch_address
from tests.agents.examples.assistant.assistant_runs import DONE, begun, calling
from tests.agents.examples.assistant.endpoint import Endpoint
from tests.factories.driven_runs import advance_to_rest, decide, effects, open_gate
from tests.harness.waiting import until


def run(folder: Path, *argv: str, seconds: float = 20) -> str:
    return tools.run_command(list(argv), folder=str(folder), seconds=seconds)


def test_it_gets_no_secret_of_the_worker(endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "DATABASE_URL", "HOLDPOINT_SECRET_KEY", "REDIS_URL", "DJANGO_SETTINGS_MODULE"):
        monkeypatch.setenv(name, "k-1")
    task = begun(endpoint, calling(("run_command", {"argv": ["env"]})), DONE)
    decide(task)
    assert advance_to_rest(task).status == "completed"
    [told] = endpoint.told()
    assert "exit code 0" in told
    assert "k-1" not in told
    names = {line.partition("=")[0] for line in told.splitlines()[1:]}
    assert names <= {"PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "HOME", "PWD", "TERM"}


def test_it_tells_how_it_ended_and_what_it_said(folder: Path) -> None:
    for argv, said in [
        (
            ["echo", "$HOME", ";", "touch", "owned"],
            "It ended with exit code 0.\n$HOME ; touch owned",
        ),
        (["sh", "-c", "echo no >&2; exit 3"], "It ended with exit code 3.\nno"),
        (["sh", "-c", "kill $$"], "It ended by SIGTERM."),
        (["cat"], "It ended with exit code 0."),  # there is nothing to read
        (["no-such-program"], "It ended with exit code 127."),
        (["pwd"], f"It ended with exit code 0.\n{folder.resolve()}"),
    ]:
        assert run(folder, *argv).startswith(said)
    assert list(folder.iterdir()) == []
    said = run(folder, "sh", "-c", "echo first; yes | head -c 5000000; echo last")
    assert said.startswith("It ended with exit code 0.\nfirst\n")
    assert said.endswith("last")
    assert "bytes are left out here" in said
    assert len(said) < 17_000


@pytest.mark.parametrize(("last", "seconds", "said"), [
    ("sleep 600", 0.5, "It ended after 0.5 seconds."),
    ("echo done", 20, "It ended with exit code 0.\ndone"),
])  # fmt: skip
def test_all_that_it_started_ends_with_it(last: str, seconds: float, said: str, folder: Path) -> None:
    assert run(folder, "sh", "-c", f"sleep 600 & echo $! > child; {last}", seconds=seconds) == said
    child = int((folder / "child").read_text())
    until(lambda: not alive(child), what="its child is gone")


@pytest.mark.parametrize(("argv", "level", "reason"), [
    (["ls"], "medium", "cannot be undone"),
    (["/bin/sh", "-c", "ls"], "high", "Runs a shell"),
    (["python3.11", "x.py"], "high", "program that it brings along"),
    (["rm", "a"], "high", "Can destroy files: rm"),
    (["env", "sudo", "ls"], "critical", "another account: sudo"),
    (["cat", "/proc/1/environ"], "high", "outside the folder"),
    (["cat", "a/../../b"], "high", "outside the folder"),
])  # fmt: skip
def test_the_risk_is_by_rule(argv: list[str], level: str, reason: str) -> None:
    risk, reasons = assess_calls([Call(tool="run_command", id="a", ref="a", arguments={"argv": argv})], [])
    assert risk == level
    assert any(reason in text for text in reasons)


def alive(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE and pid != os.getpid()
    except psutil.NoSuchProcess:
        return False


def text_in(charset: str) -> dict[str, str]:
    return {"Content-Type": f"text/plain; charset={charset}"}


PLAIN = {"Content-Type": "text/plain"}
UNASKED = "which was not asked for: nothing of it is told."
SITE = {  # by path: status, headers, body, and the end of what is told of it
    "/x?y=1": (200, text_in("utf-8"), "gr\u00fcezi".encode(), "HTTP 200 OK, text/plain\n\ngr\u00fcezi"),
    "/latin": (200, text_in("ISO-8859-1"), "gr\u00fcezi".encode("latin-1"), "gr\u00fcezi"),
    # Python's codec of that name makes text that no state holds: it failed the run's step.
    "/odd": (200, text_in("unicode_escape"), b"\\ud800 \xff", "\\ud800 \ufffd"),
    "/moved": (302, {"Location": "/secret"}, b"", "Nothing was followed; ask for that address if you want it."),
    "/picture": (200, {"Content-Type": "image/png"}, b"\x89PNG", "no text, so nothing of it is told."),
    "/long": (200, PLAIN, b"x" * 3_000_000, "only its first 16,000 characters are told."),
    "/bomb": (200, PLAIN | {"Content-Encoding": "br"}, brotli.compress(bytes(8 * 1024 * 1024), quality=5), UNASKED),
    "/two": (200, PLAIN | {"Content-Encoding": "Identity, gzip"}, b"x", UNASKED),
    "/plain": (200, PLAIN | {"Content-Encoding": "Identity"}, b"as it is", "as it is"),
}


class Site(BaseHTTPRequestHandler):
    """Answers by its path, and counts."""

    asked: list[str] = []

    def do_GET(self) -> None:
        self.asked.append(f"{self.headers['Host']}{self.path}")
        status, headers, body, _ = SITE[self.path]
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


@pytest.fixture
def site() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Site)
    server.daemon_threads = True
    Site.asked.clear()
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
    yield f"http://localhost:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


@pytest.fixture
def inside(settings: Any) -> None:
    settings.HOLDPOINT_ASSISTANT_NETWORKS = ["127.0.0.0/8", "::1/128"]


@pytest.mark.usefixtures("inside")
def test_what_came_back_is_told_as_text_in_bounds(site: str) -> None:
    for path, (*_, words) in SITE.items():
        Site.asked.clear()
        told = fetch_address(f"{site}{path}")
        assert (told.endswith(words), len(told) < 17_000) == (True, True), path
        assert Site.asked == [f"{site.removeprefix('http://')}{path}"]
        assert (f"it is at {site}/secret now" in told) == (path == "/moved")


def test_what_is_no_address_is_not_fetched_and_asked_of_nobody(endpoint: Endpoint) -> None:
    urls = ["file:///etc/passwd", "ftp://a.example/", "http://", "nonsense", "http://u:p@a.example/"]
    assert {fetch_address(url)[:19] for url in urls} == {"Nothing was fetched"}
    assert begun(endpoint, calling(*(("http_get", {"url": url}) for url in urls)), DONE).status == "completed"
    assert [told[:11] for told in endpoint.told()] == ["The address"] * 5


def test_an_address_inside_is_refused_unless_a_setting_allows_it(site: str, endpoint: Endpoint) -> None:
    run = begun(endpoint, calling(("http_get", {"url": f"{site}/secret"})), DONE)
    decide(run)
    assert advance_to_rest(run).status == "completed"
    assert "not a public address" in endpoint.told()[0]
    assert Site.asked == []


@pytest.mark.usefixtures("inside")
def test_a_name_is_looked_up_once_and_that_is_connected_to(site: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A name that says another address the second time (DNS rebinding) is not asked a second time."""
    port = int(site.rpartition(":")[2])
    asked: list[Any] = []

    def says(host: str, *args: Any, **more: Any) -> Any:
        asked.append(host)
        return [(2, 1, 6, "", ("127.0.0.1" if host in ("rebound.example", "127.0.0.1") else "192.0.2.1", port))]

    monkeypatch.setattr("socket.getaddrinfo", says)
    assert "gr\u00fcezi" in fetch_address(f"http://rebound.example:{port}/x?y=1")
    assert asked.count("rebound.example") == 1


@pytest.mark.usefixtures("inside")
def test_a_host_that_a_setting_names_is_asked_without_a_gate(site: str, endpoint: Endpoint, settings: Any) -> None:
    settings.HOLDPOINT_ASSISTANT_HOSTS = ["localhost"]
    run = begun(endpoint, calling(("http_get", {"url": f"{site}/x?y=1"})), DONE)
    assert run.status == "completed"
    assert effects(run) == []
    assert "gr\u00fcezi" in endpoint.told()[0]
    other = begun(endpoint, calling(("http_get", {"url": f"{site.replace('localhost', '127.0.0.1')}/x?y=1"})), DONE)
    assert open_gate(other).asked.actions[0].tool == "http_get"
