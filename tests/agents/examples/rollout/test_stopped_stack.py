"""The rollout on a stack that is off when its timer ends: a signal came early, and was sent twice."""

from __future__ import annotations

import json
import secrets
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.config.local.started_stack import Stack, environment, started_before
from tests.harness.services import run
from tests.harness.session import Session
from tests.harness.waiting import PATIENCE, until

SOAK = 25.0  # seconds: longer than it takes to stop a stack
PEOPLE = """
import json
from datetime import timedelta
from django.contrib.auth.models import Group, User
from agents import tokens
from checkpoints.actors import SYSTEM
from config.local import seed

seed.make_people("nobody signs in")
seed.make_policies()
team = Group.objects.get(name="Support")
made = {}
for name, scopes in {
    "bob": ["runs:read", "runs:start", "runs:signal"], "ann": ["runs:read", "gates:read", "gates:decide"]
}.items():
    owner = User.objects.get(username=name)
    _, made[name] = tokens.issue(owner=owner, name=name, scopes=scopes, lasts=timedelta(days=1), team=team, by=SYSTEM)
print("tokens", json.dumps(made))
"""


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[[Path], Stack]]:
    """Return start(home) -> Stack that is up; all are gone at the end."""
    stacks: list[Stack] = []

    def starting(home: Path) -> Stack:
        stacks.append(Stack(tmp_path / f"stack-{len(stacks)}", home=home))
        stacks[-1].wait()
        until(lambda: stacks[-1].get("/readyz").status_code == 200, what="everything works")
        return stacks[-1]

    yield starting
    for stack in stacks:
        if stack.service.alive:
            stack.interrupt()
        stack.service.kill()


def people(stack: Stack) -> dict[str, str]:
    """Make those who come with the product; return their tokens."""
    done = run(sys.executable, "manage.py", "shell", "-c", PEOPLE, env=environment(stack.home, stack.port, PORT=""))
    line = next(line for line in done.stdout.splitlines() if line.startswith("tokens "))
    found: dict[str, str] = json.loads(line.removeprefix("tokens "))
    return found


class Api:
    """One person's requests to a stack."""

    def __init__(self, stack: Stack, token: str) -> None:
        self.base, self.headers = f"{stack.base}/api/", {"Authorization": f"Bearer {token}"}

    def get(self, path: str) -> Any:
        """Read something."""
        return httpx.get(self.base + path, headers=self.headers, timeout=PATIENCE).raise_for_status().json()

    def post(self, path: str, body: Any) -> httpx.Response:
        """Send an order."""
        headers = self.headers | {"Idempotency-Key": secrets.token_hex(8)}
        return httpx.post(self.base + path, json=body, headers=headers, timeout=PATIENCE).raise_for_status()


@pytest.mark.long
def test_a_rollout_goes_on_where_the_stack_was_off_when_its_soak_ended(
    start: Callable[[Path], Stack], tmp_path: Path, servers: Session
) -> None:
    stack = start(started_before(tmp_path / "home", servers))
    tokens = people(stack)
    bob, ann = (Api(stack, tokens[name]) for name in ("bob", "ann"))
    given = {"service": "checkout", "version": "2.4.0", "servers": 40, "soak": SOAK}
    number = bob.post("runs", {"agent": "rollout", "input": given, "team": "Support"}).json()["id"]
    until(lambda: ann.get("gates?limit=10")["items"], what="it asks")
    [gate] = ann.get("gates?limit=10")["items"]
    seen = ann.get(f"gates/{gate['id']}")["digest"]
    signal = {"value": {"errors": 0.2, "by": "prober"}, "key": "soak-1"}
    assert bob.post(f"runs/{number}/signals/health", signal).status_code == 201  # before anything waits for it
    ann.post(f"gates/{gate['id']}/decisions", {"verdict": "approve", "seen": seen})
    until(lambda: "until" in bob.get(f"runs/{number}")["reason"], what="it soaks")
    assert bob.post(f"runs/{number}/signals/health", signal).status_code == 200
    over = datetime.now(UTC) + timedelta(seconds=SOAK)
    assert stack.interrupt() == 0
    assert datetime.now(UTC) < over - timedelta(seconds=5), "the stack was stopped after the soak"

    until(lambda: datetime.now(UTC) > over, what="the soak is over, and everything is off", within=2 * SOAK)
    again = start(stack.home)
    bob = Api(again, tokens["bob"])
    until(lambda: bob.get(f"runs/{number}")["status"] == "completed", what="it is completed")
    assert len(bob.get(f"runs/{number}/signals")["items"]) == 1
    made = [json.loads(line) for line in (again.home / "sandbox" / "trade.jsonl").read_text().splitlines()]
    assert [(each["kind"], each["wanted"]["servers"]) for each in made] == [("make", 4), ("make", 40)]
