"""Measures the cost of the worst requests for a web process, and the delay of others while ten clients send them.

Each kind alone first: the server's processor seconds for one request. Then all kinds from ten clients for half a
minute, while `/healthz` is requested ten times a second: its response time, and the resident memory.
"""

from __future__ import annotations

import itertools
import json
import socket
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import httpx

from benchmarks.marks import mark
from benchmarks.parts.numbers import percentile
from benchmarks.parts.people import make_person, make_team, make_token, session_of
from benchmarks.parts.processes import processor, resident
from benchmarks.parts.scratch import Scratch
from tests.harness.services import Service

if TYPE_CHECKING:
    from django.contrib.auth.models import User

CLIENTS = 10
SECONDS = 30
AIM = 2.0  # s
AGENT = "bench-outside"
JSON = {"Content-Type": "application/json"}
ENDLESS = 4_000_000  # bytes of a request head that never ends


class Worst:
    """The senders of the worst requests: a program with a token, a reviewer's session, and a raw socket."""

    def __init__(self, base: str, token: str, reviewer: User) -> None:
        limits = httpx.Limits(max_connections=CLIENTS)
        program = {"Authorization": f"Bearer {token}"}
        self.program = httpx.Client(base_url=base, headers=program, timeout=120, limits=limits)
        cookies = {"sessionid": session_of(reviewer), "csrftoken": "c" * 32}
        page = {"accept": "text/html", "x-csrftoken": "c" * 32, "origin": base}
        self.browser = httpx.Client(base_url=base, cookies=cookies, headers=page, timeout=120, limits=limits)
        self.base, self.answers = base, Counter[str]()
        self.gate = self._ask("x" * 8_000_000)
        self.kinds: dict[str, Callable[[], int | str]] = {
            "15 MB of []": lambda: self._post("[" + "[]," * 5_000_000 + "[]]"),
            "15 MB of one text": lambda: self._post(json.dumps("x" * 15_000_000)),
            "50,000 names": lambda: self._post(json.dumps({str(n): n for n in range(50_000)})),
            "500,000 deep": lambda: self._post("[" * 500_000),
            "page of a value of 8,000,000 characters": lambda: self._read(""),
            "its preview": lambda: self._read("preview/"),
            "its draft": self._draft,
            "a head without an end": self._endless,
            "half a request": self._half,
        }

    def send(self, kind: str) -> None:
        """Send one request of that kind."""
        try:
            self.answers[f"{kind}: {self.kinds[kind]()}"] += 1
        except (httpx.HTTPError, OSError) as error:
            self.answers[f"{kind}: {type(error).__name__}"] += 1

    def _ask(self, text: str) -> int:
        card = {"title": "Wire", "actions": [{"id": "wire", "arguments": {"to": text}}]}
        answer = self.program.post("/api/gates", json=card)
        if answer.status_code != 201:
            raise RuntimeError(answer.text[:500])
        return int(answer.json()["gate"])

    def _post(self, body: str) -> int:
        return self.program.post("/api/gates", content=body, headers=JSON).status_code

    def _read(self, part: str) -> int:
        return self.browser.get(f"/gates/{self.gate}/{part}").status_code

    def _draft(self) -> int:
        typed = {"args.wire/to": "y" * 2_000_000, "verdict": "edit", "key": "k"}
        return self.browser.post(f"/gates/{self.gate}/drafts/", data=typed).status_code

    def _endless(self) -> str:
        with self._dialled() as connection:
            connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Long: ")
            for _ in range(ENDLESS // 65536):
                connection.sendall(b"a" * 65536)
        return "taken"

    def _half(self) -> str:
        with self._dialled() as connection:
            connection.sendall(b"POST /api/gates HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\nx")
            return connection.recv(64).decode(errors="replace").partition("\r")[0] or "closed"

    def _dialled(self) -> socket.socket:
        where = urlsplit(self.base)
        return socket.create_connection((where.hostname or "", where.port or 0), timeout=120)


def main(seconds: int = SECONDS) -> None:
    """Print the cost of each kind, then memory and `/healthz` under all of them."""
    with Scratch() as scratch:
        team = make_team()
        token, reviewer = make_token(make_person("olga", team), AGENT), make_person("ann", team)
        web, base = scratch.web()
        quiet = _answers(base, threading.Event(), limit=50)
        print(f"{'before':<42} {resident(web.pid):6.0f} MB; /healthz p50 {quiet[25] * 1e3:.1f} ms")
        worst, spent = Worst(base, token, reviewer), dict[str, float]()
        for kind in worst.kinds:
            before = processor(web.pid)
            worst.send(kind)
            spent[kind] = processor(web.pid) - before
            print(f"{kind:<42} {spent[kind]:6.2f} s of processor time, then {resident(web.pid):5.0f} MB", flush=True)
        dearest = max(spent, key=lambda kind: spent[kind])
        mark("dearest request, of processor time", spent[dearest], "s", most=AIM, beside={"request": dearest})
        _together(worst, web, base, seconds)
        print("\n".join(f"{number:>7} of {kind}" for kind, number in sorted(worst.answers.items())))


def _together(worst: Worst, web: Service, base: str, seconds: int) -> None:
    over, turn, most = threading.Event(), itertools.cycle(worst.kinds), [0.0]

    def client() -> None:
        while not over.is_set():
            worst.send(next(turn))

    with ThreadPoolExecutor(CLIENTS + 1) as pool:
        waits = pool.submit(_answers, base, over)
        for _ in range(CLIENTS):
            pool.submit(client)
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            time.sleep(1)
            most[0] = max(most[0], resident(web.pid))
        over.set()
        waited = waits.result()
    p50, p99 = percentile(waited, 50) * 1e3, percentile(waited, 99) * 1e3
    print(
        f"ten clients, {seconds} s: /healthz p50 {p50:.0f} ms, p99 {p99:.0f} ms, longest {max(waited) * 1e3:.0f} ms "
        f"of {len(waited)}; at most {most[0]:.0f} MB, {resident(web.pid):.0f} MB afterwards"
    )


def _answers(base: str, over: threading.Event, limit: int = 1_000_000) -> list[float]:
    """Measure the response time of `/healthz` in seconds, ten times a second, on connections of their own."""
    took: list[float] = []
    while not over.is_set() and len(took) < limit:
        began = time.monotonic()
        httpx.get(f"{base}/healthz", timeout=120).raise_for_status()
        took.append(time.monotonic() - began)
        time.sleep(0.1)
    return sorted(took)


if __name__ == "__main__":
    main(int((sys.argv[1:] or [str(SECONDS)])[0]))
