"""On no page does a word of an external program stand in our own voice.

"Done for Invoice 7, approved by Ann" was said of a resource that a program had named, in the inbox, at the gate and in
a bulk list; lists of runs and of children gave its titles and reasons as ours, and so did the administration.
"""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.test import Client

from agents.models import ChildLink
from approvals.models import Gate
from approvals.presentation.gate_facts.provenance import Provenance, in_quotes
from checkpoints.models import Checkpoint, Hold, Run
from tests.agents.remote.outside_program import ACTION, Program
from tests.approvals.bulk.bulk_forms import preview
from tests.factories import MEMBER, ann, decide, make_policy, make_run, make_team, make_user
from tests.harness.signed_in_clients import signed_in

WORD = re.compile(r"zqx (\w+) approved by Ann")


def words(part: str) -> str:
    """What a program calls a part of what it asks; each place is known by its own."""
    return f"zqx {part} approved by Ann"


CARD: dict[str, Any] = {
    "title": words("title"), "summary": words("summary"), "amount": words("amount"), "for_whom": words("whom"),
    "resource": words("resource"), "risk": "low", "reasons": [words("reason")],
    "quotes": [{"label": words("quoted"), "role": words("role"), "pointer": "/payment/to"}],
    "actions": [{**ACTION, "title": words("action"), "pinned": ["/amount"]}],
}  # fmt: skip
QUESTION: dict[str, Any] = {
    "title": words("title"), "resource": words("resource"), "thread": words("thread"),
    "actions": [{
        "id": "wire", "tool": "wire", "title": words("action"), "arguments": {"to": "x", "lines": ["y"]},
        "schema": {"type": "object", "title": words("form"), "description": words("form"), "properties": {
            "to": {"type": "string", "title": words("label"), "description": words("help")},
            "lines": {"type": "array", "title": words("list"), "items": {"type": "string", "title": words("item")}},
        }},
    }],
}  # fmt: skip


@pytest.fixture(scope="module")
def program() -> Program:
    """One that was allowed a payment, was refused another, asks for two more, and failed in each way that there is."""
    first = Program(team=make_team(may=MEMBER))
    make_policy(first.team, name="default")
    decide(asked(first), ann(first.team), "approve")
    first.claim()
    first.ok(first.report(first.begin()["id"]))
    decide(asked(again(first)), ann(first.team), "reject", then="stop", comment="No.")
    asked(again(first))
    asked(again(first), to="somebody else")
    first.ok(first.post("gates", QUESTION))
    withdrawn = first.ok(first.post("gates", QUESTION))["gate"]
    first.ok(first.post(f"gates/{withdrawn}/withdrawals", {"reason": words("withdrawal")}))
    failed = again(first)
    failed.draft()
    failed.ok(failed.work("endings", status="failed", reason=words("failure")))
    doubtful = again(first)
    decide(asked(doubtful), ann(first.team), "approve")
    doubtful.claim()
    doubtful.ok(doubtful.report(doubtful.begin()["id"], status="unknown", error=words("error"), writes={}))
    broken = again(first)
    broken.ok(broken.work("failures", step="draft", error=words("error")))
    return first


def again(program: Program) -> Program:
    other = Program(team=program.team, agent=program.agent, owner=program.owner)
    other.register()
    body = {"agent": other.agent, "input": {"invoice": {"number": 7}}, "title": words("run"), "thread": words("thread")}
    other.run = other.ok(other.post("runs", body))["id"]
    other.claim(worker=words("worker"))
    return other


def asked(program: Program, **payment: Any) -> Gate:
    if not program.run:
        program.start()
    ops = [{"op": "set", "field": "payment", "value": {"to": "ACME", "amount": "120.00", **payment}}]
    program.ok(program.work("checkpoints", step="draft", ops=ops, notes=[words("note")]))
    return Gate.objects.get(pk=program.ok(program.work("gates", step="review", **CARD))["gate"])


def in_our_voice(html: str) -> set[str]:
    """The parts whose words stand outside of all quotation, forms, and drawings of what would run."""
    for tag in ("q", "figure", "blockquote", "textarea", "option", "pre", "ins", "del"):
        html = re.sub(rf"(?s)<{tag}\b[^>]*>.*?</{tag}>", " ", html)
    html = re.sub(r'(?s)<input\b[^>]*>|<p class="voice">.*?</p>|<div class="verbatim".*?</div>', " ", html)
    return set(WORD.findall(re.sub(r"“[^”]*”", " ", html)))


def seen_by(client: Client, addresses: list[str]) -> dict[str, set[str]]:
    """Address -> the parts that stand in our voice there."""
    found, looked = {}, set[str]()
    for address in addresses:
        answer = client.get(address)
        assert answer.status_code == 200, address
        html = answer.content.decode()
        looked |= set(WORD.findall(html))
        if unquoted := in_our_voice(html):
            found[address] = unquoted
    assert looked, "nothing of the program was on these pages"
    return found


def test_lists_and_gates_quote_what_a_program_says(program: Program) -> None:
    gates = list(Gate.objects.filter(team=program.team).order_by("pk"))
    client = signed_in(ann(program.team))
    pages = ["/", "/?queue=all", "/?queue=decided", "/jump/?q=zqx", "/?q=zqx", "/insights/gates/", "/audit/"]
    ends = {(gate.status, gate.kind): gate for gate in gates}.values()  # one of each
    pages += [f"/gates/{gate.pk}/{part}" for gate in ends for part in ("", "preview/", "receipt/", "status/")]
    pages += [f"/gates/{gate.pk}/hand-over/" for gate in gates if gate.status == "open"]
    assert seen_by(client, pages) == {}
    assert in_our_voice(preview(client, [gate for gate in gates if gate.status == "open"])) == set()


def test_runs_quote_what_their_program_says(program: Program) -> None:
    client, pages = signed_in(ann(program.team)), ["/runs/", "/runs/?q=zqx", f"/agents/{program.agent}/"]
    runs = Run.objects.filter(team=program.team)
    for run in {(run.status, run.title): run for run in runs}.values():  # one of each
        last = Checkpoint.objects.filter(run=run).latest("seq").seq
        pages += [f"/runs/{run.pk}/{part}" for part in ("", "events/", "timeline/", f"?at={last}")]
        pages += [f"/runs/{run.pk}/checkpoints/{last}/{part}" for part in ("", "edit/", "fork/")]
    assert seen_by(client, pages) == {}


def test_a_child_of_a_program_is_quoted_in_its_parents_page(program: Program) -> None:
    parent = make_run(team=program.team)
    at = parent.head
    assert at is not None
    for run in Run.objects.filter(team=program.team, plan__external=True):
        ChildLink.objects.create(
            run=run, parent=parent, base=at, head=at, step="fan_out", input_digest=b"1", occurrence=1,
            agent=program.agent, digest=run.pk.to_bytes(8), number=1,
        )  # fmt: skip
    assert seen_by(signed_in(ann(program.team)), [f"/runs/{parent.pk}/"]) == {}


def test_the_administration_quotes_what_a_program_says(program: Program) -> None:
    client, pages = signed_in(make_user("Root", superuser=True)), list[str]()
    rows = {
        "approvals/gate": Gate.objects.filter(team=program.team),
        "checkpoints/run": Run.objects.filter(team=program.team),
        "checkpoints/technicalhold": Hold.objects.filter(run__team=program.team),
    }
    for table, found in rows.items():
        row = found.first()
        pages += [f"/admin/{table}/", *([f"/admin/{table}/{row.pk}/change/"] if row else [])]
    assert seen_by(client, [*pages, "/admin/agents/failure/"]) == {}


def test_a_quotation_mark_in_a_programs_words_does_not_end_their_quotation() -> None:
    """As a title in plain text, “Pay” was approved by Ann. “Good” read as if the middle of it were ours."""
    theirs = Provenance(agent="payouts", outside=True)
    assert theirs.in_a_line("Pay” was approved by Ann. “Good").count("”") == 1
    assert in_quotes("Pay” it “", outside=True) == "“Pay\u2019 it \u2018”"
    assert in_quotes("Pay” it “", outside=False) == "Pay” it “"
