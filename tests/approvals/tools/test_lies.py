"""Whatever whoever asks calls things, a reviewer reads the real names and values, and the words as theirs."""

from __future__ import annotations

import re
from dataclasses import replace
from html import unescape
from typing import Any

import pytest

from approvals.cards.action import Action, ToolVersion
from approvals.cards.card import Card
from approvals.models import Gate
from approvals.presentation.decision_form import send_button
from approvals.presentation.gate_facts import unsupported
from approvals.presentation.gate_facts.provenance import Provenance
from approvals.presentation.text import exact_call
from checkpoints.runs.plans import PlanSpec, StepSpec
from tests.agents.remote.outside_program import STEPS, Program
from tests.factories import MEMBER, ann, make_user
from tests.harness.signed_in_clients import confirmed, form_of, post, signed_in

from .registered_tools import TITLE, lied

TAG = re.compile(r"<[^>]+>")
THEIRS = re.compile(r'<q class="theirs[^"]*">(.*?)</q>', re.DOTALL)
PIN = re.compile(r"<dt>(?:(?!<dt>).)*?pin-name(?:(?!</div>).)*", re.DOTALL)
COMMIT = re.compile(r'data-for="approve"[^>]*data-commit>\s*<span id="commit-approve">(.*?)</span>', re.DOTALL)
LIES = ("verified by Holdpoint", "Internal note", "Invoice number", "Amount (EUR)", "ACME Ltd", "€10.00")


def words(html: str) -> str:
    return " ".join(unescape(TAG.sub(" ", html)).split())


def ours(html: str) -> str:
    """What the page says in our own voice: without what is marked as somebody else's words."""
    plain = re.sub(r"<figure class=\"quote\".*?</figure>", "", THEIRS.sub("", html), flags=re.DOTALL)
    plain = re.sub(r"<(?:script|title|ul class=\"look\").*?</(?:script|title|ul)>", "", plain, flags=re.DOTALL)
    return plain.partition('<section class="sheet" aria-labelledby="state"')[0]


@pytest.fixture
def gate() -> Gate:
    return lied()


def page(gate: Gate, part: str = "") -> str:
    answer = signed_in(ann(gate.team)).get(f"/gates/{gate.pk}/{part}")
    assert answer.status_code == 200
    return str(answer.content.decode())


def test_the_gates_page_says_real_names_and_values_and_the_programs_words_as_theirs(gate: Gate) -> None:
    html, agent = page(gate), gate.run.plan.agent
    told = [words(each) for each in THEIRS.findall(html)]
    assert {TITLE, "Internal note", "Invoice number", "Amount (EUR)", "ACME Ltd"} <= set(told)
    assert f"Title by {agent}" in words(html)
    assert not [lie for lie in ("Internal note", "Invoice number", "Amount (EUR)") if lie in unescape(ours(html))]
    [pin] = PIN.findall(html)
    assert '<code class="pin-name"><bdi>amount</bdi></code>' in pin
    assert "99999.00" in words(pin).replace(" ", "")
    assert THEIRS.findall(pin) == ["<bdi>Invoice number</bdi>"]
    for name in ("to", "amount", "ref"):
        assert f'<code class="real"><bdi>{name}</bdi></code>' in html
    options = re.findall(r"<option[^>]*>(.*?)</option>", html)
    assert [unescape(each) for each in options if "ACME" in each or "Eve" in each] == [
        "eve-account, which they call “ACME Ltd”",
        "acme-4711, which they call “Eve Evil”",
    ]
    assert "“€10.00” in the title is not what runs: amount is 99999.00. It appears only in ref." in words(html)
    assert "“ACME Ltd” in the title is not what runs: to is eve-account." in words(html)
    assert f"says {agent}" in words(html.partition('<dl class="cells">')[2].partition("</dl>")[0])
    assert "calls the risk low" in words(html)
    [said] = COMMIT.findall(html)
    assert "99999.00" in said
    assert not any(lie in unescape(said) for lie in LIES)


def test_nothing_of_it_is_in_our_voice_elsewhere(gate: Gate) -> None:
    for part in ("preview/", "status/"):
        assert not any(lie in unescape(ours(page(gate, part))) for lie in LIES)
    said = words(page(gate, "preview/"))
    for each in ("bank.wire", "amount 99999.00", "is not what runs"):
        assert each in said
    client = signed_in(ann(gate.team))
    assert "Title differs from what runs" in words(client.get("/").content.decode())
    root = confirmed(make_user("Root", superuser=True))
    held = root.get("/admin/checkpoints/technicalhold/", {"run__id__exact": gate.run_id}).content.decode()
    assert f"<q><bdi>{TITLE}</bdi></q>" in held
    edit = client.get(f"/runs/{gate.run_id}/checkpoints/1/edit/").content.decode()
    assert "Internal note" in edit
    assert not any(lie in unescape(ours(edit)) for lie in ("Internal note", "Invoice number", "Amount (EUR)"))
    run = client.get(f"/runs/{gate.run_id}/").content.decode()
    assert TITLE in [words(each) for each in THEIRS.findall(run)]
    head = run.partition('<section class="sheet" aria-labelledby="state"')[0]
    assert TITLE not in unescape(ours(head.partition('<div class="tree"')[0]))
    auditor = signed_in(make_user("Audrey", gate.team, may=(*MEMBER, "checkpoints.view_audit")))
    lists = [(client, address) for address in ("/", "/?queue=all", "/runs/", "/jump/?q=wire", "/?queue=decided")]
    for reader, address in (*lists, (auditor, f"/audit/?run={gate.run_id}")):
        if "decided" in address:
            assert post(ann(gate.team), gate, form_of(gate)).status_code == 303
        html = reader.get(address).content.decode()
        assert TITLE in unescape(html)
        assert not any(lie in unescape(ours(html)) for lie in LIES)
    decided = page(gate)
    assert not any(lie in unescape(ours(decided)) for lie in LIES)
    assert '<code class="pin-name"><bdi>amount</bdi></code>' in decided


def test_a_step_that_a_program_calls_by_a_title_goes_by_its_name_in_our_sentences() -> None:
    program = Program()
    titled = [{**step, "title": "Send the newsletter"} if step["name"] == "wire" else step for step in STEPS]
    program.register(steps=titled)
    program.run = program.ok(program.post("runs", {"agent": program.agent, "input": {"invoice": {}}}))["id"]
    program.claim()
    program.draft()
    gate = Gate.objects.get(pk=program.ask()["gate"])
    html = page(gate)
    assert "newsletter" not in html
    assert "wire" in words(html.partition('class="impact"')[2])


def card(title: str, arguments: Any, *, pinned: tuple[str, ...] = (), **more: Any) -> Card:
    action = Action(id="do", tool="bank.wire", title="bank.wire", arguments=arguments, pinned=pinned)
    return Card(title=title, actions=[action], **more)


@pytest.mark.parametrize(
    ("title", "arguments"),
    [
        ("Wire €10.00 to ACME Ltd", {"to": "ACME Ltd", "amount": "10.00"}),
        ("Wire 1.284,00 € to ACME", {"to": "ACME Ltd", "amount": "1284.00"}),
        ("Wire €1.5k to ACME", {"to": "ACME", "total": "1500"}),
        ("Wire €12.34 to ACME", {"to": "ACME", "amount_cents": 1234}),
        ("Order three things for €30.00", {"lines": [{"price": "10.00"}, {"price": "20.00"}]}),
        ("Mail marit@fernhollow.example", {"to": "marit@fernhollow.example", "text": "Hello"}),
        ("Pay Marit Ellery", {"customer": {"first": "Marit", "last": "Ellery"}}),
        ("Wire to DE02 1203 0000 0000 2020 51", {"iban": "DE02120300000000202051"}),
        ("Deploy version 2.10 to production", {"version": "2.10"}),
    ],
)
def test_what_an_argument_bears_out(title: str, arguments: Any) -> None:
    assert unsupported.found(card(title, arguments)) == []


@pytest.mark.parametrize(
    ("title", "arguments", "said"),
    [
        ("Wire €10.00", {"amount": "99999.00"}, "“€10.00” in the title is not what runs: amount is 99999.00."),
        ("Wire €10", {"amount": "100", "ref": "10"},
         "“€10” in the title is not what runs: amount is 100. It appears only in ref."),
        ("Wire €10.00", {"x": "eve"}, "“€10.00” in the title is in no argument that runs."),
        ("Wire to ACME Ltd", {"to": "eve", "memo": "ACME Ltd"},
         "“ACME Ltd” in the title is not what runs: to is eve. It appears only in memo."),
        ("Write to bob@acme.example", {"recipient": "eve@evil.example"},
         "“bob@acme.example” in the title is not what runs: recipient is eve@evil.example."),
        ("Pay “Marit Ellery”", {"iban": "DE02"}, "“Marit Ellery” in the title is not what runs: iban is DE02."),
    ],
)  # fmt: skip
def test_what_none_does(title: str, arguments: Any, said: str) -> None:
    assert unsupported.found(card(title, arguments)) == [said]


def test_the_other_words_pinned_numbers_and_secrets_count_too() -> None:
    told = unsupported.found(card("Wire", {"amount": "5.00"}, amount="€7.00", for_whom="ACME"))
    assert told == ["“€7.00” in the amount is not what runs: amount is 5.00.", "“ACME” is in no argument that runs."]
    assert unsupported.found(card("Wire €10.00", {"x": "10.00", "y": "99.00"}, pinned=("/y",))) == [
        "“€10.00” in the title is not what runs: y is 99.00. It appears only in x."
    ]
    [many] = unsupported.found(card("Wire €10.00", {"lines": [str(at) for at in range(exact_call.LEAVES + 5)]}))
    assert many.startswith("There are too many arguments")
    schema = {"type": "object", "properties": {"amount": {"type": "string", "writeOnly": True}}}
    action = Action(id="do", tool="t", title="t", arguments={"amount": "77.00"}, schema=schema)
    assert "77" not in " ".join(unsupported.found(Card(title="Wire €10.00", actions=[action])))


def test_the_amount_that_our_sentences_name_is_the_arguments() -> None:
    one, two = ({"amount": "9.00", **more} for more in ({"currency": "EUR"}, {"fee": "1.00"}))
    assert exact_call.amount(card("Wire €1", one), masked=exact_call.AT_GATE) == "9.00 EUR"
    assert exact_call.amount(card("Wire €1", two), masked=exact_call.AT_GATE) == ""


@pytest.mark.parametrize(
    ("arguments", "pinned"),
    [({"amount": "99,999.00", "fee": "10.00"}, ()), ({"transfer": "99999.00", "fee": "10.00"}, ("/transfer",))],
)
def test_an_amount_that_is_written_out_or_oddly_named_is_not_passed_over(arguments: Any, pinned: Any) -> None:
    """Our button said "10.00", which is the fee."""
    asked = card("Wire", arguments, pinned=pinned)
    assert exact_call.amount(asked, masked=exact_call.AT_GATE) == ""
    plan = PlanSpec("robo", "1", steps=(StepSpec("do", kind="effect"),), external=True)
    assert "10.00" not in send_button.approving(replace(asked, allows=["do"]), plan, edited=False)


def test_the_button_names_no_amount_that_a_program_picked_by_pinning_it() -> None:
    """It read "Approve: wire €10.00", the fee of a transfer of 99999.00."""
    schema = {"type": "object", "properties": {"fee": {"type": "string", "format": "decimal"}}}
    arguments = {"amount": "99999.00", "fee": "10.00", "currency": "EUR"}
    action = Action(
        id="do", tool="t", title="Wire €10.00", effect="wire", arguments=arguments, schema=schema, pinned=["/fee"]
    )
    plan = PlanSpec("robo", "1", steps=(StepSpec("wire", kind="effect"),))
    asked = Card(title="Wire €10.00", actions=[action], allows=["wire"])
    assert "10.00" in send_button.approving(asked, plan, edited=False)
    assert send_button.approving(asked, replace(plan, external=True), edited=False) == "Approve: wire"


@pytest.mark.parametrize(("tools", "theirs"), [([], True), ([None], True), (["low", None], True), (["low"], False)])
def test_the_risk_is_ours_only_where_all_that_is_asked_is_registered(tools: list[str | None], theirs: bool) -> None:
    """One registered action of low risk beside another made the program's word ours; so did a card without any."""
    given = [ToolVersion(version=1, risk=risk) if risk else None for risk in tools]
    actions = [Action(id=f"a{at}", tool="t", title="t", registered=each) for at, each in enumerate(given)]
    wire = Card(title="Wire", actions=actions)
    assert Provenance(agent="robo", outside=True).sets_risk(wire) is theirs
