"""The refunds agent from the mail to the ledger, with the people in between: the real runner, store and sandbox.

What others give back while people think is not paid on top of unasked.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pytest
from django.core import mail as outbox

from agents import AgentError, EffectUnknown
from agents.definition.agent import RunInfo
from agents.errors import InputRefused
from agents.examples import refunds, sending
from agents.examples.orders import find
from agents.examples.refunds import Refunds
from agents.runs.start import start_run
from approvals.errors import Invalid
from checkpoints import actors
from checkpoints.models import Run
from checkpoints.values import json_pointer
from tests.agents.examples.refunds.conftest import World
from tests.agents.examples.refunds.refund_runs import CONDITION, edit, make_refund_run
from tests.factories import ann, make_team
from tests.factories.driven_runs import advance_to_rest, answer, decide, effects, open_gate, state
from tests.harness.examples import first_alone
from tests.harness.signed_in_clients import signed_in

pytestmark = pytest.mark.usefixtures("world")


def test_approved_edited_sent_back_and_stopped_each_come_out_as_decided(world: World) -> None:
    approved, edited, sent_back, stopped = (make_refund_run(name) for name in ("01", "03", "02", "06"))
    assert open_gate(approved).title == "Refund €1,284.00 and reply to Marit Ellery"
    decide(approved)
    edit(edited, "refund", amount="120.5")
    decide(sent_back, "reject", then="back", back_to="propose", comment="half of it")
    decide(stopped, "reject", then="stop", comment="I will ring them")
    for run in (approved, edited, sent_back, stopped):
        advance_to_rest(run)
    assert (approved.status, edited.status) == ("completed", "completed")
    assert world.refunds("20418") == [("1284.00", "succeeded")]
    assert world.refunds("20402") == [("120.50", "succeeded")]
    assert world.refunds("20388") == []
    assert (stopped.status, world.refunds("20431")) == ("cancelled", [])

    again = open_gate(sent_back).standing().card
    assert again.title == "Refund €17.30 and reply to Jonas Brandt"
    assert "As Ann Okafor asked: 50% of it." in again.summary
    assert "Sent back with feedback by Ann Okafor" in again.reasons
    _, quote = again.quotes
    assert (quote.label, quote.role) == ("Ann Okafor", "reviewer, sent it back")
    assert json_pointer.find_value(state(sent_back), quote.pointer) == "half of it"
    decide(sent_back)
    advance_to_rest(sent_back)
    assert world.refunds("20388") == [("17.30", "succeeded")]

    sent = {message.to[0]: message for message in outbox.outbox}
    assert sorted(sent) == [
        "jonas.brandt@posthorn.example",
        "kaethe.muehlbauer@gruenstrasse.example",
        "marit.ellery@fernhollow.example",
    ]
    assert "€120.50" in sent["kaethe.muehlbauer@gruenstrasse.example"].body
    assert "147.90" not in sent["kaethe.muehlbauer@gruenstrasse.example"].body


REFUSED_EDITS: list[tuple[str, dict[str, Any], str]] = [
    ("refund", {"amount": "a lot"}, "Input should be a valid decimal"),
    ("refund", {"charge": "ch_20418"}, "to the card that paid the order"),
    ("refund", {"payee": "me"}, "Extra inputs are not permitted"),
    ("reply", {"to": "thief@elsewhere.example"}, "the address that wrote"),
    ("reply", {"subject": "a\r\nBcc: thief@elsewhere.example"}, "should match pattern"),
]


def test_an_edit_is_checked_by_the_agents_own_rules() -> None:
    run = make_refund_run("14")
    version = open_gate(run).version
    for action, change, sentence in REFUSED_EDITS:
        with pytest.raises(Invalid) as refused:
            edit(run, action, **change)
        assert sentence in str([error["message"] for error in refused.value.errors]), change
    assert open_gate(run).version == version


def test_the_reply_goes_out_as_approved_with_the_statement_below() -> None:
    run = make_refund_run("10")
    text = "Dear Silas Quayle,\n\nhere it is.\n\nAnn"
    edit(run, "reply", text=text)
    assert advance_to_rest(run).status == "completed"
    [sent] = outbox.outbox
    assert (sent.to, sent.subject) == (["silas.quayle@harbourpost.example"], "Your refund for order 20437")
    assert sent.body.startswith(text)
    payment = state(run)["payment"]["id"]
    assert f"Refund      €89.00\nTo          card ending 2846\nReference   {payment}" in sent.body
    assert sent.extra_headers["Message-ID"] == state(run)["reply_sent"]["message_id"]


@pytest.mark.parametrize("kind", first_alone(["cut_after", "timeout"]))
def test_a_lost_answer_of_the_provider_never_pays_twice(
    kind: str, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sending, "TIMEOUT", 3.0)
    run = make_refund_run("04")
    decide(run)
    world.fault("refunds", kind, times=2, seconds=30)
    advance_to_rest(run)
    assert run.status == "completed"
    assert world.refunds("20409") == [("106.00", "succeeded")]
    assert len({row.key for row in effects(run, "pay")}) == 1
    assert len(outbox.outbox) == 1


def test_a_refused_payment_may_be_lowered_and_is_then_paid_once(world: World) -> None:
    """The question after the failure offered to try the same again, or to stop."""
    run = make_refund_run("06")
    world.refund(f"elsewhere-{run.pk}", "ch_20431", "12000.00", "GBP").raise_for_status()
    decide(run, dropped=[CONDITION])
    failed = open_gate(advance_to_rest(run))
    assert (failed.kind, failed.step, outbox.outbox) == ("recovery", "pay", [])
    assert "more than the 480.00 GBP left" in failed.asked.summary
    question = failed.asked.question
    assert question is not None
    labels = {choice["id"]: choice["label"] for choice in question["choices"]}
    assert labels["revise"] == "Change the values first, then approve them again"
    answer(run, "revise")

    again = open_gate(advance_to_rest(run))
    card = again.standing().card
    assert (again.step, again.kind) == ("review", "review")
    assert card.reopened is not None
    assert "more than the 480.00 GBP left" in card.reopened["failed"]
    assert "£12,000.00 is already refunded on this charge by others" in card.reasons
    assert "£12,480.00 cannot be paid: £480.00 is left of the payment" in card.reasons
    page = signed_in(ann(run.team)).get(f"/gates/{again.pk}/").content.decode()
    assert "Asked again: it failed" in page
    assert "more than the 480.00 GBP left" in page
    with pytest.raises(Invalid) as refused:
        decide(run)
    assert [(error["action"], error["pointer"]) for error in refused.value.errors] == [("refund", "/amount")]

    edit(run, "refund", amount="480.00")
    assert advance_to_rest(run).status == "completed"
    assert world.refunds("20431") == [("12000.00", "succeeded"), ("480.00", "succeeded")]
    assert [row.status for row in effects(run, "pay")] == ["failed", "done"]
    assert len(outbox.outbox) == 1


def test_any_file_is_an_input_a_large_one_is_cut_and_no_larger_one_is_taken(tmp_path: Path) -> None:
    junk = bytes(range(256)) * 2_000
    with pytest.raises(AgentError, match=r"no \.eml file"):
        Refunds.inputs_from(tmp_path)
    (tmp_path / "junk.eml").write_bytes(junk)
    (tmp_path / "big.eml").write_bytes(b"From: a@b.example\n\norder 20418\n" + b"x" * 3_000_000)
    big, other = Refunds.inputs_from(tmp_path)
    assert len(big["mail"]["raw"]) < 2_100_000
    run = advance_to_rest(start_run("refunds", other, by=actors.SYSTEM, team=make_team()))
    assert open_gate(run).step == "ask_facts"
    assert state(run)["mail"]["raw"].encode("iso-8859-1") == junk
    with pytest.raises(InputRefused, match="/mail/raw"):
        start_run("refunds", {"mail": {"name": "x", "raw": "x" * 3_000_000}}, by=actors.SYSTEM, team=make_team())


def approve_by_api(run: Run, **more: Any) -> None:
    """Approve what the run asks with nothing said of preconditions but what `more` says."""
    gate = open_gate(run)
    body = {"seen": bytes(gate.standing().digest).hex(), "verdict": "approve", **more}
    answer = signed_in(ann(run.team)).post(f"/api/gates/{gate.pk}/decisions", body, content_type="application/json")
    assert answer.status_code == 201, answer.content


def test_the_same_mail_in_several_runs_is_paid_again_only_where_somebody_drops_the_check(world: World) -> None:
    """A bare approval over the API passed over the check that the page had ticked, and both runs paid."""
    first, second, third = (make_refund_run("05") for _ in range(3))
    assert [offered.preselected for offered in open_gate(second).standing().card.preconditions] == [True]
    for run, dropped, status, paid in [
        (first, [], "completed", 1), (second, [], "waiting", 1), (third, [CONDITION], "completed", 2),
    ]:  # fmt: skip
        approve_by_api(run, **({"dropped": dropped} if dropped else {}))
        assert (advance_to_rest(run).status, len(world.refunds("20412"))) == (status, paid)


def test_only_what_others_were_paid_and_still_have_counts(world: World) -> None:
    run = make_refund_run("06")
    order = find("20431")
    assert order is not None
    mine, others = (Refunds(RunInfo(number, ""), 1) for number in (run.pk, run.pk + 1))
    slip = world.refund("a slip", "ch_20431", "5.00", "GBP").json()
    assert mine.refunded(order) == "£5.00"
    world.http.post(f"/refunds/{slip['id']}/cancel").raise_for_status()
    decide(run, preconditions=[CONDITION])
    assert advance_to_rest(run).status == "completed"
    assert (mine.refunded(order), others.refunded(order)) == ("£0.00", "£12,480.00")


def test_a_provider_that_cannot_be_asked_opens_no_gate_and_pays_nothing(world: World) -> None:
    world.fault("charges", "500", times=4)
    run = make_refund_run("13")
    assert (open_gate(run).kind, open_gate(run).step) == ("recovery", "find_order")
    waiting = make_refund_run("12")
    decide(waiting, preconditions=[CONDITION])
    world.fault("charges", "cut_before", times=4)
    advance_to_rest(waiting)
    assert (open_gate(waiting).kind, open_gate(waiting).step) == ("recovery", "pay")
    assert (world.refunds("20455"), effects(waiting)) == ([], [])


def find_refund(key: str) -> Any:
    return Refunds(RunInfo(0, ""), 1).find_refund(key=key)


def test_a_refund_is_found_by_its_key_and_a_provider_that_does_not_answer_has_not_said_no(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A 404 of a proxy, taken for "it did not happen", would have paid a second time."""
    assert find_refund("k-found") is None
    paid = world.refund("k-found", "ch_20424", "1.00").json()
    [payment] = find_refund("k-found").values()
    assert (payment.id, str(payment.amount), payment.status) == (paid["id"], "1.00", "succeeded")
    for kind in ("500", "cut_after"):
        world.fault("reads", kind)
        with pytest.raises(EffectUnknown):
            find_refund("k-found")
    world.http.post(f"/refunds/{paid['id']}/cancel").raise_for_status()
    assert find_refund("k-found") is None
    for said in (
        httpx.Response(404, text="not here"),
        httpx.Response(404, json={"error": "there is nothing here"}),
        httpx.Response(403, json={"error": "there is no such refund"}),
        httpx.Response(200, json={"id": "re_1"}),
        httpx.Response(200, text="<html>"),
    ):
        transport = httpx.MockTransport(lambda request, said=said: said)
        client = httpx.Client(base_url="http://elsewhere", transport=transport)
        monkeypatch.setattr(refunds, "open_provider", lambda client=client: client)
        with pytest.raises(EffectUnknown):
            find_refund("k")
