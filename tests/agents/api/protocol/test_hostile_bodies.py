"""Bodies that somebody wrote to break something: whatever stands at whatever place, the answer is one of ours.

Each example of the description is sent with such values in the place of each of its members.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator
from typing import Any

import pytest

from agents.api.protocol.problem_details import MEDIA_TYPE
from agents.models.token import FOR_AGENTS
from tests.agents.api.sent_requests import example, operations, takes_a_body
from tests.agents.remote.outside_program import ACTION, PAYMENT, SCHEMA, STEPS, WIRE, Program
from tests.approvals.webhooks.made_webhooks import make_webhook
from tests.factories import MEMBER, make_gate, make_team, make_user
from tests.harness.signed_in_clients import signed_in

MAY = ("approvals.manage_webhooks", "approvals.decide_gate", "checkpoints.rewind_run", *MEMBER)
DEEP = "[" * 90 + "]" * 90
HOSTILE = {  # as JSON, since some of it is none
    "a NUL": '"a\\u0000b"',
    "a lone surrogate": '"\\ud800"',
    "a name with a NUL": '{"a\\u0000b": 1}',
    "a name that is no text": '{"\\udfff": 1}',
    "a name twice": '{"a": 1, "a": 2}',
    "no number": "NaN",
    "infinity": "-Infinity",
    "too large for a double": "1e999",
    "too many digits": "9" * 5000,
    "many digits": "9" * 4000,
    "beyond a column": str(2**63),
    "below a column": str(-(2**63) - 1),
    "beyond an integer": str(2**31),
    "minus nothing": "-0.0",
    "almost nothing": "1e-320",
    "long": json.dumps("x" * 70_000),
    "long, without a space, from right to left": json.dumps("\u202e\u2066" * 4000),
    "line breaks": json.dumps("a\r\nb\tc\x1b[31m"),
    "deep": DEEP,
    "deep objects": '{"a":' * 90 + "1" + "}" * 90,
    "wide": json.dumps([None] * 20_000),
    "many names": json.dumps({str(n): n for n in range(2000)}),
    "nothing": "null",
    "empty": '""',
    "an empty list": "[]",
    "an empty object": "{}",
    "yes": "true",
    "a reference to itself": '{"$ref": "#"}',
    "a reference elsewhere": '{"$ref": "file:///etc/passwd"}',
    "a pattern that backtracks": '{"type": "string", "pattern": "^(a+)+$"}',
}
ALWAYS = (
    "a NUL",
    "a lone surrogate",
    "a name with a NUL",
    "too large for a double",
    "beyond a column",
    "deep",
    "nothing",
)
REST = [name for name in HOSTILE if name not in ALWAYS]
SPREAD = 24  # each of the rest is sent to every 24th place
MARK = "@@here@@"


class World:
    """A program at work, a gate, and somebody who may do all that the API lets people do."""

    def __init__(self) -> None:
        self.program = Program(team=make_team(may=MAY))
        self.program.start()
        self.gate = make_gate(team=self.program.team)
        self.webhook, _ = make_webhook(team=self.program.team)
        self.member = signed_in(make_user("Mira Member", self.program.team))

    def address(self, path: str) -> str:
        """Where to send."""
        named = {
            "run_id": self.program.run, "gate_id": self.gate.pk, "agent": self.program.agent, "effect_id": 1,
            "name": "go", "seq": 1,
            "webhook_id": self.webhook.pk, "delivery_id": 1,
        }  # fmt: skip
        return path.format(**named)

    def body(self, path: str) -> dict[str, Any]:
        """What would be taken there, or nearly."""
        made = example(path)
        if "token" in made:
            made["token"] = self.program.token
        if path.endswith("/decisions") or path == "/api/gates/{gate_id}/impacts":
            made = {"seen": bytes(self.gate.standing().digest).hex(), "verdict": "approve", "comment": "", "then": ""}
        if path.endswith("/checkpoints"):
            made |= {"step": "draft", "ops": [{"op": "set", "field": "payment", "value": WIRE}], "notes": ["x"]}
        if path == "/api/runs/{run_id}/gates":
            made |= {"step": "review", "actions": [ACTION]}
        if path.endswith("/versions"):
            made |= {"state_schema": SCHEMA, "steps": STEPS, "version": secrets.token_hex(4)}
        asked = {"policy": "", "actions": [{"id": "wire", "arguments": WIRE, "schema": PAYMENT}]}
        if path == "/api/gates":
            made |= {"agent": "", **asked}
        if path == "/api/gates/batches":
            made |= {"agent": "", "gates": [made["gates"][0] | asked]}
        if path == "/api/runs":
            made |= {"agent": self.program.agent, "input": {"invoice": {}}}
        return made


def places(value: Any) -> Iterator[Any]:
    """The whole value with MARK in the place of each thing in it, in turn."""
    if isinstance(value, dict):
        for name, each in value.items():
            yield {**value, name: MARK}
            for new in places(each):
                yield {**value, name: new}
    elif isinstance(value, list):
        for number, each in enumerate(value):
            for new in [MARK, *places(each)]:
                yield [*value[:number], new, *value[number + 1 :]]


POSTED = [path for path, method, _ in operations() if method == "post" and takes_a_body(path)]


@pytest.mark.parametrize("path", POSTED)
def test_whatever_stands_at_whatever_place_the_answer_is_one_of_ours(path: str) -> None:
    send_all(path, spread=SPREAD)


@pytest.mark.long
@pytest.mark.parametrize("path", POSTED)
def test_every_hostile_value_at_every_place_the_answer_is_one_of_ours(path: str) -> None:
    send_all(path, spread=1)


def send_all(path: str, *, spread: int) -> None:
    """Send the example with hostile values in each place; of `REST` every so many of them."""
    world = World()
    whole = world.body(path)
    texts = [json.dumps(each) for each in places(whole)]
    [sent_by] = [told["security"] for each, method, told in operations() if (each, method) == (path, "post")]
    scopes = sent_by[0].get("token") or [""]  # nobody has signed in where a token is asked for
    client = world.program.client if scopes[0] in FOR_AGENTS else world.member
    client.raise_request_exception = False
    wrong = []
    assert texts
    for number, text in enumerate(texts):
        rest = [each for place, each in enumerate(REST) if place % spread == number % spread]
        for name in [*ALWAYS, *rest]:
            hostile = HOSTILE[name]
            body = text.replace(json.dumps(MARK), hostile)
            answer = client.post(world.address(path), body, content_type="application/json")
            if answer.status_code >= 500 or (answer.status_code >= 400 and answer["Content-Type"] != MEDIA_TYPE):
                wrong.append((name, answer.status_code, text, answer.content[:300]))
    assert wrong == []
