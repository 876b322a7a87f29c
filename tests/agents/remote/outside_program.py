"""A program elsewhere, as the server sees it: what it sends over the API, under one claim."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from django.contrib.auth.models import Group, User
from django.db.models import F
from django.db.models.functions import Now
from django.test import Client

from approvals.decisions import deciding
from approvals.decisions.submission import Submission
from approvals.models import Gate
from checkpoints.models import Run
from tests.factories import MEMBER, REJECTION, ann, make_team, make_user, repeatable, unique
from tests.factories.tokens import bearing, make_token

STEPS: list[dict[str, Any]] = [
    {"name": "draft", "kind": "step", "reads": ["invoice", "feedback"], "writes": ["payment"], "code_hash": "aa" * 32},
    {"name": "review", "kind": "gate", "reads": ["invoice", "payment"], "allows": ["wire"], "edits": ["payment"],
     "on_reject": "draft", "feedback": "feedback"},
    {"name": "wire", "kind": "effect", "reads": ["payment"], "writes": ["receipt"], "undo": "cancel_wire"},
    {"name": "report", "kind": "step", "reads": ["receipt"], "writes": ["summary"], "ends": True},
]  # fmt: skip
PAYMENT = {
    "type": "object",
    "properties": {"to": {"type": "string"}, "amount": {"type": "string", "pattern": "^[0-9]+[.][0-9]{2}$"}},
    "required": ["to", "amount"],
    "additionalProperties": False,
}
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "invoice": {"type": "object"},
        "payment": PAYMENT,
        "receipt": {"type": "object"},
        "summary": {"type": "string"},
        "feedback": {"type": "array", "items": {}},
        "log": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["invoice"],
}
WIRE = {"to": "ACME", "amount": "120.00"}
ACTION: dict[str, Any] = {"id": "wire", "effect": "wire", "pointer": "/payment", "tool": "bank.wire"}


@dataclass
class Program:
    """One that has a token for its agent, and works on one run."""

    team: Group = field(default_factory=lambda: make_team(may=MEMBER))
    agent: str = field(default_factory=lambda: unique("payouts"))
    owner: User | None = None
    run: int = 0
    token: int = 0

    def __post_init__(self) -> None:
        self.owner = self.owner or make_user("Olga Owner", self.team)
        _, self.sent = make_token(self.owner, team=self.team, agent=self.agent)
        self.client: Client = bearing(self.sent)

    def post(self, address: str, body: dict[str, Any], *, key: str = "", **headers: str) -> Any:
        sent = {"Idempotency-Key": key, **headers} if key else headers
        return self.client.post(f"/api/{address}", body, content_type="application/json", headers=sent)

    def work(self, what: str, *, key: str = "", **body: Any) -> Any:
        """POST something under the claim."""
        return self.post(f"runs/{self.run}/{what}", {"token": self.token, **body}, key=key)

    def ok(self, answer: Any) -> dict[str, Any]:
        """What an answer says that took it."""
        assert answer.status_code in (200, 201), answer.content
        told: dict[str, Any] = answer.json()
        return told

    def register(self, **more: Any) -> dict[str, Any]:
        body = {"version": "1", "state_schema": SCHEMA, "steps": STEPS, **more}
        return self.ok(self.post(f"agents/{self.agent}/versions", body))

    def start(self, **plan: Any) -> dict[str, Any]:
        """Register the plan, start a run of it and claim it."""
        self.register(**plan)
        self.run = self.ok(self.post("runs", {"agent": self.agent, "input": {"invoice": {"number": 7}}}))["id"]
        return self.claim()

    def claim(self, **more: Any) -> dict[str, Any]:
        told = self.ok(self.post(f"runs/{self.run}/claims", {"worker": "box:81", **more}))
        self.token = told["token"]
        return told

    def draft(self, **payment: Any) -> dict[str, Any]:
        """Save what the first step wrote."""
        ops = [{"op": "set", "field": "payment", "value": {**WIRE, **payment}}]
        return self.ok(self.work("checkpoints", step="draft", ops=ops))

    def ask(self, **more: Any) -> dict[str, Any]:
        """Open the gate."""
        return self.ok(self.work("gates", step="review", title="Wire 120.00", actions=[ACTION], **more))

    def to_gate(self) -> Gate:
        """Start a run and bring it to its gate."""
        self.start()
        self.draft()
        return Gate.objects.get(pk=self.ask()["gate"])

    def get_approved(self) -> dict[str, Any]:
        """Ask, have a person approve, and claim the run again."""
        decide(Gate.objects.get(pk=self.ask()["gate"]))
        return self.claim()

    def to_effect(self) -> None:
        """Start a run and bring it to where its payment is approved."""
        self.start()
        self.draft()
        self.get_approved()

    def begin(self) -> dict[str, Any]:
        """Begin the payment; what is told of the effect."""
        effect: dict[str, Any] = self.ok(self.work("effects", step="wire"))["next"]["effect"]
        return effect

    def report(self, effect: int, **more: Any) -> Any:
        body = {"status": "done", "writes": {"receipt": {"id": "tx_1"}}, **more}
        return self.work(f"effects/{effect}/results", **body)

    def lapse(self) -> None:
        """The program dies, and its lease runs out."""
        Run.objects.filter(pk=self.run).update(lease_until=Now() - timedelta(seconds=1))

    def row(self) -> Run:
        """The run as the database has it."""
        return Run.objects.get(pk=self.run)


def decide(gate: Gate, verdict: str = "approve", *, by: User | None = None, **said: Any) -> None:
    """A person's word on what stands."""
    fresh = Gate.objects.get(pk=gate.pk)
    reviewer = by or ann(gate.team)
    given: dict[str, Any] = {"key": secrets.token_hex(8), "confirm": repeatable(gate.run)}
    given |= REJECTION if verdict == "reject" else {}
    seen = bytes(fresh.standing().digest)
    deciding.decide(fresh, Submission(verdict=verdict, **{"seen": seen, **given, **said}), by=reviewer)


def closed_before(gate: Gate) -> None:
    """Age its closing past the time in which its program may be first."""
    Gate.objects.filter(pk=gate.pk).update(closed_at=F("closed_at") - timedelta(minutes=1))
