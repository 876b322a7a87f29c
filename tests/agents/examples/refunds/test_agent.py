"""The refunds agent from the mail to the ledger, with the people in between: the real runner, store and sandbox."""

from __future__ import annotations

import email
from decimal import Decimal
from email import policy
from pathlib import Path
from typing import Any

import pytest
from django.core import mail as outbox
from django.core.management import call_command

from agents import AgentError
from agents.definition.agent import RunInfo
from agents.errors import InputRefused
from agents.examples import sending
from agents.examples.refunds import Refunds
from agents.examples.refunds.state import Payment, Reason, Refund
from agents.questions import answering
from agents.runs.start import start_run
from approvals.errors import AlreadyDecided, DecisionRefused, Invalid, NotAllowed
from approvals.gates import questions, thread
from checkpoints import actors, store
from checkpoints.models import Checkpoint, Run
from checkpoints.values import json_pointer
from tests.factories import ann, bob, make_policy, make_team, make_user
from tests.factories.driven_runs import advance, advance_to_rest, answer, decide, effects, open_gate, state
from tests.harness.signed_in_clients import signed_in

from .conftest import World
from .refund_runs import CONDITION, MAILS, edit, make_refund_run, past_doubts

pytestmark = pytest.mark.usefixtures("world")


def test_every_mail_of_a_folder_becomes_a_run_that_stops_at_a_gate(capsys: pytest.CaptureFixture[str]) -> None:
    team = make_team()
    call_command("run_agent", "refunds", "--input", str(MAILS), "--team", team.name)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(list(MAILS.glob("*.eml"))) == 16
    assert "Marit Ellery: Order 20418: the frames are on their way back" in lines[0]
    runs = [advance_to_rest(run) for run in Run.objects.filter(team=team).order_by("pk")]
    assert {run.status for run in runs} == {"waiting"}
    steps = [open_gate(run).step for run in runs]
    assert (steps.count("ask_facts"), steps.count("ask_doubts"), steps.count("review")) == (3, 2, 11)
    assert outbox.outbox == []


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

    proposed = Checkpoint.objects.filter(run=sent_back, step="propose").order_by("seq")
    amounts = [store.load_checkpoint(place.id).state["proposal"]["refund"]["amount"] for place in proposed]
    assert amounts == ["34.60", "17.30"]  # the rejected branch can be read
    notes = [bytes(note.text).decode() for note in sent_back.notes.order_by("pk")]
    assert any("As Ann Okafor asked: 50% of it." in note for note in notes)

    sent = {message.to[0]: message for message in outbox.outbox}
    assert sorted(sent) == [
        "jonas.brandt@posthorn.example",
        "kaethe.muehlbauer@gruenstrasse.example",
        "marit.ellery@fernhollow.example",
    ]
    assert "€120.50" in sent["kaethe.muehlbauer@gruenstrasse.example"].body
    assert "147.90" not in sent["kaethe.muehlbauer@gruenstrasse.example"].body


@pytest.mark.parametrize(
    ("action", "change", "sentence"),
    [
        ("refund", {"amount": "a lot"}, "Input should be a valid decimal"),
        ("refund", {"amount": 12.5}, "write the amount as text"),
        ("refund", {"amount": "-1.00"}, "greater than or equal to 0"),
        ("refund", {"charge": "ch_20418"}, "to the card that paid the order"),
        ("refund", {"card": "0000"}, "to the card that paid the order"),
        ("refund", {"currency": "GBP"}, "to the card that paid the order"),
        ("refund", {"payee": "me"}, "Extra inputs are not permitted"),
        ("reply", {"to": "thief@elsewhere.example"}, "the address that wrote"),
        ("reply", {"subject": "a\r\nBcc: thief@elsewhere.example"}, "should match pattern"),
    ],
)
def test_an_edit_is_checked_by_the_agents_own_rules(action: str, change: dict[str, Any], sentence: str) -> None:
    run = make_refund_run("14")
    version = open_gate(run).version
    with pytest.raises(Invalid) as refused:
        edit(run, action, **change)
    assert sentence in str([error["message"] for error in refused.value.errors])
    assert open_gate(run).version == version


def test_the_reply_goes_out_as_approved_with_the_statement_below(settings: Any) -> None:
    run = make_refund_run("10")
    text = "Dear Silas Quayle,\n\nhere it is.\n\nAnn"
    edit(run, "reply", text=text)
    settings.EMAIL_BACKEND = "django.core.mail.backends.filebased.EmailBackend"
    settings.EMAIL_FILE_PATH = Path(settings.HOME) / f"mail-{run.pk}"
    advance_to_rest(run)
    assert run.status == "completed"
    [file] = Path(settings.EMAIL_FILE_PATH).iterdir()
    sent = email.message_from_bytes(file.read_bytes().split(b"-" * 79)[0], policy=policy.default)
    assert (sent["To"], sent["Subject"]) == ("silas.quayle@harbourpost.example", "Your refund for order 20437")
    assert sent.get_content().startswith(text)
    payment = state(run)["payment"]["id"]
    assert f"Refund      €89.00\nTo          card ending 2846\nReference   {payment}" in sent.get_content()
    assert sent["Message-ID"] == state(run)["reply_sent"]["message_id"]


def test_a_refund_of_nothing_pays_nothing_and_still_replies(world: World) -> None:
    run = make_refund_run("12")
    edit(run, "refund", amount="0.00")
    advance_to_rest(run)
    assert (run.status, state(run)["payment"]) == ("completed", None)
    assert world.refunds("20455") == []
    assert len(outbox.outbox) == 1


@pytest.mark.parametrize(("name", "title"), [("07", "order 99184 is not known"), ("08", "no order number found")])
def test_missing_facts_are_asked_for_and_the_run_goes_on_with_them(name: str, title: str) -> None:
    """A plain yes to the number that is not known asked for it again, for ever."""
    run = make_refund_run(name)
    assert open_gate(run).title == f"Type the missing facts: {title}"
    with pytest.raises(Invalid) as refused:
        decide(run)
    assert [(error["action"], error["pointer"]) for error in refused.value.errors] == [("facts", "/order_number")]
    edit(run, "facts", order_number="20424", reason="faulty")
    past_doubts(advance_to_rest(run))  # the first of the two is not hers
    assert open_gate(run).title == "Refund €80.00 and reply to Rosa Iannelli"
    assert state(run)["order"]["number"] == "20424"


def test_facts_that_lead_nowhere_are_asked_for_again() -> None:
    run = make_refund_run("09")
    by = ann(run.team)
    with pytest.raises(Invalid):
        edit(run, "facts", by=by, order_number="twenty")
    edit(run, "facts", by=by, order_number="11111")
    again = open_gate(advance_to_rest(run))
    assert (again.step, again.title) == ("ask_facts", "Type the missing facts: order 11111 is not known")
    edit(run, "facts", by=by, order_number="20433")
    past_doubts(advance_to_rest(run))
    assert open_gate(run).step == "review"
    with pytest.raises(NotAllowed):
        decide(run, by=by)  # who typed the facts does not approve what follows from them
    decide(run, by=bob(run.team))
    advance_to_rest(run)
    assert outbox.outbox[0].to == ["lukas.frei@seegass.example"]  # the mail had no address: the order's is taken


def test_a_mail_that_hides_something_is_dangerous_and_gets_nothing_more() -> None:
    card = open_gate(make_refund_run("10")).asked
    assert (card.amount, card.risk) == ("€89.00", "high")
    assert "The customer's mail hides text behind 5,001 blanks" in card.reasons
    assert "6 characters in the customer's mail cannot be seen" in card.reasons


def test_the_card_says_everything_that_a_yes_does() -> None:
    card = open_gate(make_refund_run("01")).standing().card
    assert (card.for_whom, card.resource) == ("Marit Ellery, Fernhollow Optics", "order 20418")
    assert set(card.allows) == {"pay", "reply"}
    refund, reply = card.actions
    assert (refund.tool, refund.effect, refund.undo) == ("payments.refund", "pay", "cancel_payment")
    assert (reply.tool, reply.effect) == ("mail.send", "reply")
    assert (refund.irreversible, reply.irreversible) == (False, True)
    assert refund.arguments["card"] == "4417"
    assert refund.pinned == ("/amount", "/card")


@pytest.mark.parametrize(("mail", "step"), [("01", "review"), ("08", "ask_facts")])
def test_the_customers_own_words_stand_beside_the_agents_account_of_them(mail: str, step: str) -> None:
    run = make_refund_run(mail)
    ticket = state(run)["ticket"]
    [quote] = open_gate(run).standing().card.quotes
    assert (open_gate(run).step, quote.label, quote.role) == (step, ticket["from_name"], "customer, by mail")
    assert json_pointer.find_value(state(run), quote.pointer) == ticket["text"] != ""


@pytest.mark.parametrize("kind", ["500", "500_after", "timeout", "cut_before", "cut_after"])
def test_a_lost_answer_of_the_provider_never_pays_twice(
    kind: str, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sending, "TIMEOUT", 0.3)
    run = make_refund_run("04")
    decide(run)
    world.fault("refunds", kind, times=2, seconds=1)
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


def test_two_of_two_agree_on_the_second_ones_edit(world: World) -> None:
    team = make_team()
    make_policy(team, quorum=2)
    run = make_refund_run("11", team=team)
    decide(run)
    edit(run, "refund", by=bob(team), amount="150.00")
    assert (advance(run).status, world.refunds("20440")) == ("waiting", [])
    decide(run)
    assert advance_to_rest(run).status == "completed"
    assert world.refunds("20440") == [("150.00", "succeeded")]


def test_whoever_started_a_run_does_not_decide_it(world: World) -> None:
    team = make_team()
    starter = make_user("Robin Starter", team)
    run = make_refund_run("13", team=team, started_by=starter)
    with pytest.raises(DecisionRefused) as refused:
        decide(run, by=starter)
    assert not isinstance(refused.value, AlreadyDecided)
    assert world.refunds("20444") == []


def test_a_question_at_the_gate_is_answered_from_the_facts_and_from_the_amount_as_it_stands() -> None:
    run = make_refund_run("01")
    gate = open_gate(run)
    assert answering.answer(questions.ask(gate, by=ann(run.team), text="Why this amount?", key="why").pk)
    [words] = [entry.text or "" for entry in thread.of_gate(gate) if entry.by_agent]
    assert words.endswith(
        "That makes €1,284.00. I read the mail as “returned”. I have no model, so that is all I can tell."
    )
    assert [entry.kind for entry in thread.of_gate(gate)].count("gate.unanswered") == 0


def test_an_order_file_that_cannot_be_read_asks_a_person_at_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HOLDPOINT_REFUNDS_ORDERS", str(tmp_path / "gone.csv"))
    run = make_refund_run("01")
    gate = open_gate(run)
    assert (gate.kind, gate.step) == ("recovery", "read_mail")
    assert "gone.csv cannot be read" in gate.asked.summary
    monkeypatch.delenv("HOLDPOINT_REFUNDS_ORDERS")
    answer(run, "retry")
    assert open_gate(advance_to_rest(run)).step == "review"


def test_paying_can_be_undone_as_often_as_it_is_asked(world: World) -> None:
    wanted = Refund(amount=Decimal("649.00"), currency="SEK", reason=Reason.RETURNED, charge="ch_20421", card="8126")
    payment = sending.ask_provider("/refunds", wanted.model_dump(mode="json"), Payment, key="to-be-undone")
    for paid in (payment, payment, None):
        Refunds(RunInfo(0, ""), 1).cancel_payment(paid)
    assert world.refunds("20421") == [("649.00", "cancelled")]


def test_any_file_at_all_starts_a_run_and_ten_megabytes_are_cut_before_anything_is_saved(tmp_path: Path) -> None:
    junk = bytes(range(256)) * 2_000
    (tmp_path / "junk.eml").write_bytes(junk)
    (tmp_path / "empty.eml").write_bytes(b"")
    (tmp_path / "big.eml").write_bytes(b"From: a@b.example\n\norder 20418\n" + b"x" * 10_000_000)
    inputs = Refunds.inputs_from(tmp_path)
    runs = [advance_to_rest(start_run("refunds", input, by=actors.SYSTEM, team=make_team())) for input in inputs]
    assert [open_gate(run).step for run in runs] == ["ask_doubts", "ask_facts", "ask_facts"]
    assert "only its first 2,000,000 bytes were read" in state(runs[0])["ticket"]["problems"]
    assert state(runs[2])["mail"]["raw"].encode("iso-8859-1") == junk
    with pytest.raises(InputRefused, match="/mail/raw"):
        start_run("refunds", {"mail": {"name": "x", "raw": "x" * 10_000_000}}, by=actors.SYSTEM, team=make_team())


def test_a_wrong_input_is_refused_with_all_its_errors(tmp_path: Path) -> None:
    with pytest.raises(InputRefused) as refused:
        start_run("refunds", {"mail": {"name": 5, "more": 1}, "extra": 1}, by=actors.SYSTEM, team=make_team())
    assert {error["pointer"] for error in refused.value.errors} == {"/mail/name", "/mail/raw", "/mail/more", "/extra"}
    with pytest.raises(AgentError, match=r"no \.eml file"):
        Refunds.inputs_from(tmp_path)
