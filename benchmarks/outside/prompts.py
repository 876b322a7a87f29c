"""Measures Claude Code's permission prompts at /mcp: a hundred calls at once, which two people decide meanwhile.

One web process; the calls are made by the official SDK's client in this process, and so are the decisions, by a thread
for each person, in the order in which the gates open.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import TextContent

from benchmarks.marks import mark
from benchmarks.parts.numbers import percentile, spread
from benchmarks.parts.people import make_person, make_team, make_token
from benchmarks.parts.relays import approve
from benchmarks.parts.scratch import Scratch

if TYPE_CHECKING:
    from django.contrib.auth.models import User

PROMPTS, WARM = 100, 10
Answers = list[tuple[dict[str, Any], int]]


def main() -> None:
    """Print how long the calls and the people take."""
    with Scratch() as scratch:
        logging.getLogger("httpx2").setLevel(logging.WARNING)
        team = make_team()
        people = [make_person(name, team) for name in ("ann", "bob")]
        sent = make_token(make_person("owner", team), "bench-prompts")
        _, base = scratch.web()
        _asked(base, sent, people, WARM, "warm")
        scratch.analyze()
        began = time.monotonic_ns()
        answers, decided = _asked(base, sent, people, PROMPTS, "prompt")
        took = (max(at for _, at in answers) - began) / 1e9
    assert Counter(answer["behavior"] for answer, _ in answers) == {"allow": PROMPTS}, answers
    echoed = [answer["updatedInput"]["command"] for answer, _ in answers]
    assert echoed == [f"echo prompt {number}" for number in range(PROMPTS)], "an answer went to another call"
    waits = [(at - decided[command]) / 1e6 for command, (_, at) in zip(echoed, answers, strict=True)]
    print(spread("decision -> answer of the permission_prompt", waits))
    mark(f"{PROMPTS} permission prompts at once, two people: all answered", took, "s")
    mark("decision -> answer of the permission prompt, p50", percentile(waits, 50), "ms")


def _asked(base: str, sent: str, people: list[User], many: int, word: str) -> tuple[Answers, dict[str, int]]:
    """Make the calls, and decide; return each answer with its time, and the time of each command's decision."""
    with ThreadPoolExecutor(len(people) + 1) as pool:
        asked = pool.submit(lambda: asyncio.run(_calls(base, sent, many, word)))
        shares = [pool.submit(_decide, person, number, len(people), many) for number, person in enumerate(people)]
        decided = {command: at for share in shares for command, at in share.result().items()}
        return asked.result(), decided


async def _calls(base: str, sent: str, many: int, word: str) -> Answers:
    headers = {"Authorization": f"Bearer {sent}"}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=120) as http,
        Client(streamable_http_client(f"{base}/mcp", http_client=http), mode="auto") as client,
    ):
        return list(await asyncio.gather(*(_prompt(client, f"echo {word} {number}") for number in range(many))))


async def _prompt(client: Client, command: str) -> tuple[dict[str, Any], int]:
    """Ask as Claude Code does, and again where people took longer than a call waits."""
    use = {"tool_name": "Bash", "input": {"command": command}, "tool_use_id": command}
    while True:
        result = await client.call_tool("permission_prompt", use)
        told = json.loads("".join(each.text for each in result.content if isinstance(each, TextContent)))
        if "sk again" not in told.get("message", ""):
            return told, time.monotonic_ns()


def _decide(person: User, number: int, people: int, many: int) -> dict[str, int]:
    """Approve this person's share of the gates, as they open; return when each command was decided."""
    from django.db import connection

    from approvals.models import Gate

    found: dict[str, int] = {}
    while len(found) < len(range(number, many, people)):
        for gate in Gate.objects.open().order_by("pk"):
            command = gate.title.removeprefix("Run ")
            if int(command.rpartition(" ")[2]) % people == number and command not in found:
                approve(gate, person)
                found[command] = time.monotonic_ns()
        time.sleep(0.01)
    connection.close()
    return found


if __name__ == "__main__":
    main()
