"""A gate's form as data: it says what the page's form says, hides what that hides, and an edit made from it counts."""

from __future__ import annotations

import html
import re
from dataclasses import replace
from decimal import Decimal
from typing import Any, Literal

from django.contrib.auth.models import User
from holdpoint.terminal.forms import fields_of, filled
from pydantic import BaseModel, Field, SecretStr

from agents.models import TokenScope
from approvals.forms import EDITABLE
from approvals.models import Gate
from checkpoints.values.canonical_json import encode_canonical
from tests.agents.api.sent_requests import EXACT, ask, check_shape
from tests.agents.api.test_doors import refusal
from tests.factories import (
    ann,
    bob,
    decide,
    make_action,
    make_card,
    make_gate,
    make_plan,
    make_policy,
    make_question,
    make_run,
    make_spec,
    make_state,
    make_team,
)
from tests.factories.runs import SCHEMA, STEPS
from tests.factories.tokens import bearing, make_token
from tests.harness.altered_rows import altered
from tests.harness.sent_statements import sent
from tests.harness.signed_in_clients import signed_in

SECRET = "tok_do_not_show_me"


class Address(BaseModel):
    city: str = Field(title="City or town")
    code: str | None = None


class Card(BaseModel):
    kind: Literal["card"] = "card"
    last: str


class Transfer(BaseModel):
    kind: Literal["transfer"] = "transfer"
    iban: str


class Order(BaseModel):
    amount: Decimal = Field(title="Amount to pay", description="Net of <b>fees</b>", le=500)
    currency: str = "EUR"
    count: int = Field(ge=1)
    share: float
    huge: int
    level: Literal[1, 2, 3]
    speed: Literal["slow", "fast"]
    urgent: bool
    note: str | None
    memo: str = Field("", max_length=2000)
    tags: list[str]
    sizes: dict[str, int]
    to: Address
    back: Address | None
    way: Card | Transfer
    more: Any
    token: SecretStr
    vast: str


VALUE: dict[str, Any] = {
    "amount": "120.00", "currency": "EUR", "count": 3, "share": 1.0, "huge": 2**70, "level": 2, "speed": "slow",
    "urgent": False, "note": None, "tags": ["a", "b"], "sizes": {"m": 1}, "to": {"city": "Malmö", "code": None},
    "back": None, "way": {"kind": "card", "last": "4242"}, "more": EXACT, "token": SECRET, "vast": "x" * (EDITABLE + 1),
}  # fmt: skip


def make_order_gate(order: dict[str, Any] = VALUE, **policy: Any) -> Gate:
    """A gate about an order, which people may edit."""
    schema = Order.model_json_schema()
    defs = {**SCHEMA["$defs"], **schema.pop("$defs")}
    state = {**SCHEMA, "$defs": defs, "properties": {**SCHEMA["properties"], "order": schema}}
    steps = tuple(replace(step, edits=("order",)) if step.kind == "gate" else step for step in STEPS)
    plan = make_plan(replace(make_spec(steps=steps), state_schema=state))
    action = make_action(id="ship", effect="", pointer="/order", pinned=["/count"], missing=["/note"])
    team = make_team()
    run = make_run(team=team, plan=plan, state=make_state(order=order))
    return make_gate(run=run, policy=make_policy(team, **policy), card=make_card(actions=[action]))


def form_of(user: User, gate: Gate) -> Any:
    told = ask(user, f"/api/gates/{gate.pk}/form")
    check_shape(told, "GateFormData")
    return told


def parts_of(part: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Every part of a form by its pointer; a choice is followed by the part that is chosen, of the same pointer."""
    found = {} if part["kind"] == "choice" and part["parts"] else {part["pointer"]: part}
    for inner in part["parts"]:
        found |= parts_of(inner)
    return found


def send(user: User, gate: Gate, seen: str, **body: Any) -> Any:
    """Decide by a token of one's own."""
    client, body = bearing(make_token(user, TokenScope.SEE, TokenScope.DECIDE)[1]), {"seen": seen, **body}
    return client.post(f"/api/gates/{gate.pk}/decisions", body, content_type="application/json")


def drawn_on_page(user: User, gate: Gate) -> dict[str, dict[str, Any]]:
    """What the gate's page draws of each input: its label and options, and whether it is required or missing."""
    page = signed_in(user).get(f"/gates/{gate.pk}/").content.decode()
    found = {}
    for text in (each.partition("<fieldset")[0] for each in page.split('data-field="')[1:]):
        options = map(str.strip, re.findall(r"<option[^>]*>(.*?)</option>", text, re.DOTALL))
        found[text.partition('"')[0]] = {
            "label": html.unescape(re.findall(r"<bdi>(.*?)</bdi>", text)[0]), "missing": "data-missing" in text,
            "required": 'aria-required="true"' in text, "choices": list(map(html.unescape, options)),
        }  # fmt: skip
    return found


def test_it_says_of_each_input_what_the_page_says() -> None:
    gate = make_order_gate()
    person = ann(gate.team)
    told = form_of(person, gate)
    [action] = told["actions"]
    parts = parts_of(action["form"])
    drawn = drawn_on_page(person, gate)
    said = {
        place: {name: part[name] for name in ("label", "missing", "required")}
        | {"choices": [choice["label"] for choice in part["choices"]]}
        for place, part in parts.items()
        if place in drawn and part["open"]
    }
    assert said == {place: shown for place, shown in drawn.items() if parts[place]["open"]}
    assert len(said) > 15
    kinds = {place[1:]: part["kind"] for place, part in parts.items()}
    assert kinds == {
        "": "group", "amount": "decimal", "currency": "text", "count": "integer", "share": "number", "huge": "integer",
        "level": "enum", "speed": "enum", "urgent": "boolean", "note": "text", "memo": "long", "tags": "rows",
        "tags/0": "text", "tags/1": "text", "sizes": "rows", "sizes/m": "integer", "to": "group", "to/city": "text",
        "to/code": "text", "back": "choice", "way": "group", "way/kind": "enum", "way/last": "text", "more": "json",
        "token": "secret", "vast": "long",
    }  # fmt: skip
    assert list(kinds)[:2] == ["", "count"]  # what is pinned comes first
    assert [place for place, part in parts.items() if not part["open"]] == ["/way/kind", "/vast"]
    assert [choice["value"] for choice in parts["/level"]["choices"]] == [1, 2, 3]
    amount = parts["/amount"]
    assert (amount["help"], amount["hints"], amount["unit"]) == ("Net of <b>fees</b>", ["at most 500.0"], "EUR")
    assert (parts["/count"]["pinned"], parts["/count"]["unit"], parts["/back"]["value"]) == (True, "", "none")
    assert encode_canonical(parts["/more"]["value"]) == encode_canonical(EXACT)
    card = ask(person, f"/api/gates/{gate.pk}")
    assert action["value"] == card["card"]["actions"][0]["arguments"]
    assert (told["digest"], told["proposal"]) == (card["digest"], 1)


def test_what_is_typed_into_it_is_what_the_decision_proposes_byte_for_byte() -> None:
    gate = make_order_gate()
    person = ann(gate.team)
    told = form_of(person, gate)
    [action] = told["actions"]
    fields = fields_of(action["form"], action["value"])
    untouched = {field.part["pointer"]: field.text for field in fields}
    assert filled(action["value"], fields, untouched) is action["value"]
    typed = {
        "/amount": "99.50", "/count": "4", "/level": "3", "/urgent": "true", "/note": "By hand", "/to/city": "Lund",
        "/tags": '["c"]', "/back": '{"city": "Ystad"}', "/share": "0.5",
    }  # fmt: skip
    new = filled(action["value"], fields, typed)
    answer = send(person, gate, told["digest"], verdict="edit", arguments={"ship": new})
    assert answer.status_code == 201, answer.content
    expected = {
        **VALUE, "amount": "99.50", "count": 4, "level": 3, "urgent": True, "note": "By hand", "tags": ["c"],
        "to": {"city": "Lund", "code": None}, "back": {"city": "Ystad"}, "share": 0.5,
    }  # fmt: skip
    [now] = Gate.objects.get(pk=gate.pk).standing().card.actions
    assert encode_canonical(now.arguments) == encode_canonical(expected)
    assert send(person, gate, told["digest"], verdict="approve").status_code == 409


def test_a_secret_is_in_no_answer_and_whoever_may_not_decide_gets_no_editable_form() -> None:
    """A node of a form holds the true value, also of what the page draws as an empty input."""
    gate = make_order_gate(groups=(finance := make_team("Finance"),))
    for person, verdicts in ((ann(finance), ["edit", "reject"]), (bob(gate.team), [])):
        answer = signed_in(person).get(f"/api/gates/{gate.pk}/form")
        assert SECRET.encode() not in answer.content
        told = answer.json()
        [action] = told["actions"]
        assert action["value"]["token"] == parts_of(action["form"])["/token"]["value"] == "•••••••• /token"
        assert (told["verdicts"], action["editable"], bool(told["why_not"])) == (verdicts, bool(verdicts), not verdicts)
    with altered(gate.standing(), body=bytes(gate.standing().body).replace(b"120.00", b"920.00")):
        refusal(signed_in(person).get(f"/api/gates/{gate.pk}/form"), 409)


def test_it_offers_what_the_page_offers_to_answer_and_where_a_rejection_leads() -> None:
    team = make_team()
    asked, held = make_gate(team=team, kind="recovery"), make_gate(team=team)
    told = form_of(ann(team), asked)
    assert (told["verdicts"], told["back_to"]) == (["answer"], [])
    offered = {answer["id"]: answer["form"] and answer["form"]["kind"] for answer in told["answers"]}
    question = make_question().question
    assert question is not None
    choices = question["choices"]
    assert list(offered) == [choice["id"] for choice in choices]
    assert {name for name, kind in offered.items() if kind} == {c["id"] for c in choices if c["needs_value"]}
    told = form_of(ann(team), held)
    assert (told["verdicts"], told["reason_required"]) == (["approve", "edit", "reject"], True)
    assert told["back_to"] == [{"value": "propose", "label": "Propose"}]
    decide(held, bob(team))
    told = form_of(ann(team), held)
    assert (told["verdicts"], told["back_to"], told["why_not"]) == ([], [], "This gate is closed.")


def test_it_costs_no_more_statements_than_to_read_the_gate() -> None:
    gate = make_order_gate()
    client = signed_in(ann(gate.team))
    counts = []
    for path in (f"/api/gates/{gate.pk}", f"/api/gates/{gate.pk}/form"):
        client.get(path)
        with sent() as statements:
            assert client.get(path).status_code == 200
        counts.append(len(statements))
    assert counts[1] <= counts[0], counts
