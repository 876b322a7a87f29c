"""Bodies: one JSON document, as large as the largest state and no larger; whatever is sent, the answer is described.

Each example of the description is sent with hostile values in the place of each of its members. Schemathesis makes
requests from the whole description, valid and not, the same each time, and sends them to the application in this
process; their addresses name things that are there, so that more than 404 comes back. `make test-long` has more.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator
from functools import cache
from typing import Any

import hypothesis
import pytest
import schemathesis
from django.core.wsgi import get_wsgi_application
from django.test import Client
from hypothesis.strategies import SearchStrategy
from schemathesis import Case, GenerationMode, checks
from schemathesis.schemas import APIOperation

from agents.api.protocol.problems import MEDIA_TYPE
from agents.definition import registry
from agents.models.token import FOR_AGENTS
from approvals.models import Message
from approvals.webhooks import outbox
from checkpoints.actors import SYSTEM
from checkpoints.values.canonical_json import MOST_VALUES
from tests.agents.api.sent_requests import address, document, example, gate, operations, takes_a_body
from tests.agents.api.test_doors import refusal
from tests.agents.remote.outside_program import ACTION, PAYMENT, SCHEMA, STEPS, WIRE, Program
from tests.approvals.webhooks.made_webhooks import make_webhook
from tests.factories import MEMBER, ann, bob, decide, make_gate, make_team, make_user
from tests.factories.tokens import make_token
from tests.harness.examples import first_alone, many, one_in
from tests.harness.signed_in_clients import signed_in

PREVIEW = "/api/runs/{run_id}/impacts"


def post(body: bytes | str, kind: str = "application/json", path: str = PREVIEW) -> Any:
    return signed_in(ann(gate().team)).post(address(path), body, content_type=kind)


def test_a_body_of_another_media_type_is_refused_to_whoever_is_known() -> None:
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=b", "application/x"):
        answer = post("{}", kind)
        assert "Content-Type: application/json" in refusal(answer, 415)["detail"]
        assert answer["Accept"] == "application/json"
    assert post('{"kind": "rewind", "at": 1}', "Application/JSON; charset=utf-8").status_code != 415
    refusal(Client().post(address(PREVIEW), "x", content_type="text/plain"), 401)


@pytest.mark.parametrize("path", [PREVIEW, "/api/gates", "/api/webhooks"])
def test_a_body_that_is_too_large_is_refused_by_the_limit_in_bytes(path: str, settings: Any) -> None:
    assert settings.HOLDPOINT_API_BODY_LIMIT > settings.HOLDPOINT_STATE_LIMIT, "the largest state fits"
    settings.HOLDPOINT_API_BODY_LIMIT = 2_000
    told = refusal(post(b" " * 2_001, path=path), 413)["detail"]
    assert "at most 2,000 bytes" in told
    assert "HOLDPOINT_API_BODY_LIMIT" in told
    assert post(b" " * 1_999 + b"1", path=path).status_code != 413


def test_what_is_larger_than_a_form_may_be_is_read() -> None:
    """Django refused more than two and a half megabytes, with a page."""
    asked = make_gate(team=make_team())
    body = b'{"kind": "rewind", "at": 1, "feedback": "' + b"x" * 4_000_000 + b'"}'
    answer = signed_in(ann(asked.team)).post(f"/api/runs/{asked.run_id}/impacts", body, content_type="application/json")
    told = refusal(answer, 422)
    assert [each["parameter"] for each in told["errors"]] == ["/feedback"]


@pytest.mark.parametrize(("opened", "closed"), first_alone([("[", "]"), ('{"a":', "}")]))
def test_what_is_nested_too_deep_or_has_too_many_values_is_refused(opened: str, closed: str) -> None:
    for depth in (140, 100_000):
        detail = refusal(post(opened * depth + "1" + closed * depth), 400)["detail"]
        assert "nested deeper than 128 levels" in detail
    for whole in (opened * 1_000_000 + "1" + closed * 1_000_000, "[" + "[]," * MOST_VALUES + "[]]"):
        assert f"more than {MOST_VALUES:,} values; send fewer, or a file" in refusal(post(whole), 400)["detail"]


def test_a_configuration_that_does_not_fit_is_named_by_its_place_in_the_body(settings: Any) -> None:
    """It was named by its place in the configuration, where a field of the state may have the same name."""
    settings.HOLDPOINT_AGENTS = ["tests.agents.testing.trial_agents"]
    registry.forget()
    try:
        body = {"agent": "trial-letters", "input": {"to": "Bob"}, "config": {"greeting": 7, "to": "Eve"}}
        answer = signed_in(ann(make_team())).post("/api/runs", body, content_type="application/json")
    finally:
        registry.forget()
    assert {each["parameter"] for each in refusal(answer, 422)["errors"]} == {"/config/greeting", "/config/to"}


@pytest.mark.parametrize(
    ("body", "place", "detail"),
    [
        ('{"kind": "edit", "patch": [{"op": "add", "value": NaN}]}', "/patch/0/value", "is NaN, which is no JSON"),
        ('{"patch": [{"op": "add", "op": "test"}]}', "/patch/0", "has the key 'op' twice"),
        ('{"feedback": "\\ud800"}', "/feedback", "has a lone surrogate, which is no text"),
        ('{"a/b": {"~": 1e999}}', "/a~1b/~0", "is too large for a double"),
        ('{"kind": 1, "kind": 2}', "/", "has the key 'kind' twice"),
    ],
)
def test_a_body_that_is_refused_as_it_is_read_names_the_place(body: str, place: str, detail: str) -> None:
    assert refusal(post(body), 400)["errors"] == [{"parameter": place, "detail": detail}]


@pytest.mark.parametrize("member", ["patch", "unknown"])
@pytest.mark.parametrize("number", [900, 30_000])
def test_a_body_of_a_thousand_faults_is_told_of_the_first(member: str, number: int) -> None:
    """The body was read again for each of its faults, which for a few thousand took longer than anybody waits."""
    faults = [None] * number if member == "patch" else []
    body = {"at": 1, "patch": faults, **{f"unknown{n}": 1 for n in range(number if member == "unknown" else 0)}}
    told = refusal(post(json.dumps(body), path="/api/runs/{run_id}/edits"), 422)
    assert len(told["errors"]) == (100 if number < 1000 else 1)
    assert told["errors"][0]["parameter"] in ("/patch/0", "/patch", "/unknown0", "/")


@pytest.mark.parametrize("path", first_alone(["gates", "runs"]))
def test_a_body_of_very_many_names_is_told_of_the_first(path: str) -> None:
    """Each name was looked for among all others, which took minutes."""
    program = Program()
    program.start()
    names = dict.fromkeys((f"no field {n}" for n in range(20_000)), 1)
    bodies: dict[str, dict[str, Any]] = {
        "runs": {"agent": program.agent, "input": names},
        "gates": {"title": "Wire", "actions": [{"id": "wire", "arguments": WIRE}], "state": names},
    }
    told = refusal(program.post(path, bodies[path]), 422)
    assert len(told["errors"]) == 100
    assert len(json.dumps(told)) < 100_000


MAY = ("approvals.manage_webhooks", "approvals.decide_gate", "checkpoints.rewind_run", *MEMBER)
DEEP = "[" * 90 + "]" * 90
HOSTILE = {  # as JSON, since some of it is none
    "a NUL": '"a\\u0000b"',
    "a lone surrogate": '"\\ud800"',
    "a name with a NUL": '{"a\\u0000b": 1}',
    "a name twice": '{"a": 1, "a": 2}',
    "no number": "NaN",
    "infinity": "-Infinity",
    "too large for a double": "1e999",
    "too many digits": "9" * 5000,
    "beyond a column": str(2**63),
    "minus nothing": "-0.0",
    "long": json.dumps("x" * 70_000),
    "long, without a space, from right to left": json.dumps("\u202e\u2066" * 4000),
    "line breaks": json.dumps("a\r\nb\tc\x1b[31m"),
    "deep": DEEP,
    "wide": json.dumps([None] * 20_000),
    "many names": json.dumps({str(n): n for n in range(2000)}),
    "nothing": "null",
    "an empty list": "[]",
    "an empty object": "{}",
    "a reference to itself": '{"$ref": "#"}',
    "a reference elsewhere": '{"$ref": "file:///etc/passwd"}',
    "a pattern that backtracks": '{"type": "string", "pattern": "^(a+)+$"}',
}
EVERY, SENT = 12, 12  # each of them is sent to every 12th place, so to each place two; fewer, of a large example
MARK = "@@here@@"


class World:
    """A program at work, a gate, and somebody who may do all that the API lets people do."""

    def __init__(self) -> None:
        self.program = Program(team=make_team(may=MAY))
        self.program.start()
        self.delivery: Message | None = None
        self.gate = self.decided = make_gate(team=self.program.team)
        self.webhook, _ = make_webhook(team=self.program.team)
        self.member = signed_in(make_user("Mira Member", self.program.team))

    def named(self, **more: Any) -> dict[str, Any]:
        """What an address may name."""
        return {
            "run_id": self.program.run, "gate_id": self.gate.pk, "agent": self.program.agent, "effect_id": 1,
            "name": "go", "seq": 1, "webhook_id": self.webhook.pk, "delivery_id": 1, **more,
        }  # fmt: skip

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
@pytest.mark.parametrize("every", [EVERY, pytest.param(1, marks=pytest.mark.long)])
def test_whatever_stands_at_whatever_place_the_answer_is_one_of_ours(path: str, every: int) -> None:
    world = World()
    texts = [json.dumps(each) for each in places(world.body(path))]
    [sent_by] = [told["security"] for each, method, told in operations() if (each, method) == (path, "post")]
    scopes = sent_by[0].get("token") or [""]  # nobody has signed in where a token is asked for
    client = world.program.client if scopes[0] in FOR_AGENTS else world.member
    client.raise_request_exception = False
    wrong = []
    assert texts
    every = max(every, len(texts) * len(HOSTILE) // SENT) if every > 1 else every
    for number, text in enumerate(texts):
        for name in list(HOSTILE)[number % every :: every]:
            body = text.replace(json.dumps(MARK), HOSTILE[name])
            answer = client.post(path.format(**world.named()), body, content_type="application/json")
            if answer.status_code >= 500 or (answer.status_code >= 400 and answer["Content-Type"] != MEDIA_TYPE):
                wrong.append((name, answer.status_code, text, answer.content[:300]))
    assert wrong == []


EXAMPLES = many(12)  # of each operation, from each of those who ask in turn
STREAM = "/api/events/stream"  # answers for as long as somebody listens: there is no body to hold to a schema
PLAIN = {"Accept-Encoding": "identity"}  # schemathesis does not undo the compression of an application in its process
checks.load_all_checks()
CHECKS: list[Any] = checks.CHECKS.get_by_names(
    ["not_a_server_error", "status_code_conformance", "content_type_conformance", "response_headers_conformance",
     "response_schema_conformance", "unsupported_method", "ignored_auth"]
)  # fmt: skip


@cache
def described() -> Any:
    """The description, with the application that it is of."""
    schema = schemathesis.openapi.from_dict(document())
    schema.app = get_wsgi_application()
    return schema


@cache
def described_operations() -> dict[str, APIOperation[Any, Any, Any, Any]]:
    return {each.ok().label: each.ok() for each in described().get_all_operations()}


@cache
def shared_world() -> tuple[World, list[dict[str, str]]]:
    """The world of all that is made, and the headers of those who ask: signed in, by a token, and the program."""
    world = World()
    world.decided = make_gate(team=world.program.team)
    decide(world.decided, ann(world.program.team))
    world.delivery = outbox.test(world.webhook, by=SYSTEM)
    world.member.get("/")
    cookies = {name: morsel.value for name, morsel in world.member.cookies.items()}
    told = "; ".join(f"{name}={value}" for name, value in cookies.items())
    signed = {"Cookie": told, **PLAIN, "X-CSRFToken": cookies.get("csrftoken", "")}
    sent = (make_token(bob(world.program.team))[1], world.program.sent)
    return world, [signed, *({"Authorization": f"Bearer {token}", **PLAIN} for token in sent)]


def place(case: Case[Any], world: World, number: int) -> None:
    """Point it at something that is there, most of the time."""
    if number % 3 == 2:
        return
    gate = (world.gate, world.decided)[number % 2]
    run, delivery = (world.program.run, gate.run_id)[number % 2], world.delivery.pk if world.delivery else 1
    there = world.named(run_id=run, gate_id=gate.pk, delivery_id=delivery)
    for name in case.path_parameters or {}:
        case.path_parameters[name] = there[name]
    if isinstance(case.body, dict) and isinstance(case.body.get("token"), int):
        case.body["token"] = world.program.token


def cases(operation: APIOperation[Any, Any, Any, Any]) -> SearchStrategy[Case[Any]]:
    fits, does_not = (operation.as_strategy(generation_mode=mode) for mode in GenerationMode)
    return fits | does_not


@pytest.mark.examples
@pytest.mark.parametrize("label", one_in(3, [each for each in described_operations() if STREAM not in each]))
def test_whatever_is_sent_is_answered_as_described(label: str) -> None:
    world, askers = shared_world()
    sent: list[int] = []

    @hypothesis.settings(
        max_examples=EXAMPLES, derandomize=True, database=None, deadline=None,
        suppress_health_check=list(hypothesis.HealthCheck), phases=[hypothesis.Phase.generate],
    )  # fmt: skip
    @hypothesis.given(case=cases(described_operations()[label]))
    def send(case: Case[Any]) -> None:
        number = len(sent)
        sent.append(number)
        place(case, world, number + number // len(askers))
        case.call_and_validate(headers=askers[number % len(askers)], checks=CHECKS)

    send()
    assert sent
