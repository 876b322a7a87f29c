"""Measures the memory of a web process under hostile requests.

Requests of eight kinds come four at a time: bodies that are refused, gates and versions each with a schema of its own,
large states, single texts of a megabyte, and pages, previews and drafts of the results. Bounded caches are full after
six tenths of them; a process that keeps something of each request grows on. The figures are resident megabytes after
each tenth.
"""

from __future__ import annotations

import json
import random
import secrets
import sys
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import httpx

from benchmarks.marks import mark
from benchmarks.parts.people import make_person, make_team, make_token, session_of
from benchmarks.parts.processes import resident
from benchmarks.parts.scratch import Scratch

if TYPE_CHECKING:
    from django.contrib.auth.models import User

JSON = {"Content-Type": "application/json"}
AT_ONCE = 4
WARM = 400
PARTS, FULL = 10, 6
AIM_FLAT = 1.1
AGENT = "bench-outside"


REFUSED = (  # made once: making them took the client longer than refusing them takes the server
    "[" * 500_000, "[" + "[]," * 200_000 + "[]]", json.dumps("x" * 2_000_000), '{"a":1,"a":2}',
    json.dumps({"actions": [None] * 50_000}), json.dumps({str(n): n for n in range(50_000)}), "1e999",
)  # fmt: skip


class Attacker:
    """The attacker: a program with a token, and a reviewer's session that reads what the program wrote."""

    def __init__(self, base: str, token: str, reviewer: User) -> None:
        headers = {"Authorization": f"Bearer {token}"}
        limits = httpx.Limits(max_connections=AT_ONCE)
        self.program = httpx.Client(base_url=base, headers=headers, timeout=120, limits=limits)
        cookies = {"sessionid": session_of(reviewer), "csrftoken": "c" * 32}
        page = {"accept": "text/html", "x-csrftoken": "c" * 32, "origin": base}
        self.browser = httpx.Client(base_url=base, cookies=cookies, headers=page, timeout=120, limits=limits)
        self.gates: list[int] = []
        self.answers: Counter[str] = Counter()
        self.kinds: list[Callable[[random.Random], httpx.Response]] = [
            self.refused, self.gate, self.version, self.state, self.huge, self.page, self.preview, self.draft,
        ]  # fmt: skip

    def send(self, number: int, only: str = "") -> None:
        """Send the request of that number; the same number always sends the same request."""
        kinds = [each for each in self.kinds if not only or each.__name__ in only.split("+")]
        kind = kinds[number % len(kinds)]
        answer = kind(random.Random(number))
        self.answers[f"{kind.__name__} {answer.status_code}"] += 1

    def refused(self, chance: random.Random) -> httpx.Response:
        """Send a body that is no card: deep, wide, long, with duplicate keys, or unterminated."""
        return self.program.post("/api/gates", content=chance.choice(REFUSED), headers=JSON)

    def gate(self, chance: random.Random) -> httpx.Response:
        """Open a gate with a new schema."""
        arguments = {f"name{n}": _text(chance) for n in range(20)}
        card = {
            "title": _text(chance)[:200], "summary": _text(chance), "state": {"padding": _text(chance) * 20},
            "actions": [{"id": "wire", "arguments": arguments, "schema": _schema(chance, arguments)}],
        }  # fmt: skip
        answer = self.program.post("/api/gates", json=card)
        if answer.status_code == 201:
            self.gates.append(answer.json()["gate"])
        return answer

    def version(self, chance: random.Random) -> httpx.Response:
        """Register a new plan, and start a run of it."""
        fields = {f"field{n}": _text(chance) for n in range(40)}
        steps = [{"name": "work", "kind": "step", "reads": [], "writes": list(fields), "code_hash": "aa" * 32}]
        body = {"version": secrets.token_hex(6), "state_schema": _schema(chance, fields), "steps": steps}
        answer = self.program.post(f"/api/agents/{AGENT}/versions", json=body)
        if answer.status_code not in (200, 201):
            return answer
        run = {"agent": AGENT, "version": body["version"], "input": fields}
        started = self.program.post("/api/runs", json=run)
        if started.status_code == 201:
            claimed = self.program.post(f"/api/runs/{started.json()['id']}/claims", json={"worker": "box:1"})
            return claimed
        return started

    def state(self, chance: random.Random) -> httpx.Response:
        """Open a gate with a state of some megabytes."""
        card = {"title": "Large", "state": {f"part{n}": _text(chance) * 40 for n in range(40)},
                "actions": [{"id": "wire", "arguments": {"to": _text(chance) * 100}}]}  # fmt: skip
        answer = self.program.post("/api/gates", json=card)
        if answer.status_code == 201:
            self.gates.append(answer.json()["gate"])
        return answer

    def huge(self, chance: random.Random) -> httpx.Response:
        """Open a gate with one incompressible text of a megabyte."""
        card = {"title": "Huge", "state": {"text": chance.randbytes(500_000).hex()},
                "actions": [{"id": "wire", "arguments": {"to": chance.randbytes(100_000).hex()}}]}  # fmt: skip
        answer = self.program.post("/api/gates", json=card)
        if answer.status_code == 201:
            self.gates.append(answer.json()["gate"])
        return answer

    def page(self, chance: random.Random) -> httpx.Response:
        """Load a gate's page or a part of it."""
        part = chance.choice(["", "status/", "preview/", "values/?at=/padding"])
        return self.browser.get(f"/gates/{self._gate(chance)}/{part}")

    def preview(self, chance: random.Random) -> httpx.Response:
        """Request the preview of an edit, as while typing."""
        return self.browser.post(f"/gates/{self._gate(chance)}/impacts/", data=self._form(chance))

    def draft(self, chance: random.Random) -> httpx.Response:
        """Save a draft."""
        return self.browser.post(f"/gates/{self._gate(chance)}/drafts/", data=self._form(chance))

    def _gate(self, chance: random.Random) -> int:
        return chance.choice(self.gates[-50:])

    def _form(self, chance: random.Random) -> dict[str, str]:
        typed = {f"args.wire/name{n}": _text(chance) for n in range(20)}
        return {**typed, f"args.wire/{_text(chance)[:50]}": "x", "verdict": "edit", "key": secrets.token_hex(16)}


def main(requests: int, only: str = "") -> None:
    """Print resident megabytes as the requests come."""
    with Scratch() as scratch:
        team = make_team()
        token, reviewer = make_token(make_person("olga", team), AGENT), make_person("ann", team)
        web, base = scratch.web()
        attacker, after = Attacker(base, token, reviewer), list[float]()
        print(f"before any request {resident(web.pid):7.1f} MB")
        attacker.gate(random.Random(-1))
        attacker.state(random.Random(-2))
        with ThreadPoolExecutor(AT_ONCE) as pool:
            list(pool.map(lambda n: attacker.send(n, only), range(-WARM, 0)))
            print(f"after {WARM:>6} to warm   {resident(web.pid):7.1f} MB")
            began, part = time.monotonic(), max(requests // PARTS, 1)
            for first in range(0, requests, part):
                list(pool.map(lambda n: attacker.send(n, only), range(first, first + part)))
                after.append(resident(web.pid))
                print(f"after {first + part:>6} requests  {after[-1]:7.1f} MB", flush=True)
        print(f"{requests / (time.monotonic() - began):.0f} requests/s; {dict(sorted(attacker.answers.items()))}")
    full, late = after[FULL - 1], max(after[FULL:])
    name = f"most memory after {FULL * part:,} hostile requests over that at them"
    beside = {"then": f"{full:.0f} MB", "most": f"{late:.0f} MB", "at the end": f"{after[-1]:.0f} MB"}
    mark(name, late / full, most=AIM_FLAT, beside=beside)


def _text(chance: random.Random) -> str:
    """Make a random text of markup, invisible characters, look-alikes, combining marks and long stretches."""
    piece = chance.choice(["<script>alert(1)</script>", "\u202e\u2066\u200b", "p\u0430ypal.com", "Z" + "\u0301" * 40,
                           "{{ 7*7 }}", "w" * 200, " " * 300, "\U000e0041", "'\"></form>", "99999.00 EUR"])  # fmt: skip
    return f"{piece}{chance.getrandbits(64):x}" * 3


def _schema(chance: random.Random, values: dict[str, str]) -> dict[str, Any]:
    """Make a new JSON Schema with these names."""
    each = {name: {"type": "string", "title": _text(chance), "description": _text(chance)} for name in values}
    return {"type": "object", "properties": each}


if __name__ == "__main__":
    main(int((sys.argv[1:] or ["10000"])[0]), *sys.argv[2:3])
