"""A vote does what was shown with it, and what was done before is done once more only where somebody says so."""

from __future__ import annotations

import datetime as dt
import json
import re
from functools import partial
from pathlib import Path
from typing import Any

from django.contrib.auth.models import User
from django.utils import timezone

from agents.models import Effect
from agents.moves import fork as forks
from agents.serving.sweeper import Sweeper
from approvals.consequences import impact_sources
from approvals.consequences.errors import RepeatNotConfirmed
from approvals.consequences.gate import GateImpacts
from approvals.gates import closing
from approvals.gates.closing import pass_deadline
from approvals.models import Decision, Gate, Outcome, Policy
from checkpoints.models import Event, Run
from tests.agents.api.sent_requests import ask
from tests.agents.api.test_deciding import post as post_json
from tests.agents.api.test_doors import refusal
from tests.agents.moves.moved_runs import after, before, fates, lines, rewind
from tests.agents.pages.test_run_page import text_of
from tests.approvals.bulk.bulk_forms import form, preview, send
from tests.approvals.decisions.undoing.windows import end_window, now, pass_window
from tests.factories import ann, bob, change_effects, decide, edit_amount, make_gate, make_policy, make_team, make_user
from tests.factories.driven_runs import advance_to_rest, make_run, open_gate
from tests.factories.driven_runs import decide as decide_run
from tests.factories.tokens import bearing, make_token
from tests.harness.racing_threads import race
from tests.harness.signed_in_clients import form_of, post, shown_of, signed_in

TOLD_AGAIN = "“Tell” was already done"
WINDOW = dt.timedelta(minutes=2)


def told_once(ledger: str, **policy: Any) -> Run:
    """A booking that was agreed to, booked, charged and told."""
    team = make_team()
    make_policy(team, name="default", **policy)
    run = advance_to_rest(make_run("booking", ledger=ledger, team=team))
    for person in [ann(team), bob(team)][: policy.get("quorum", 1)]:
        decide_run(run, by=person)
    assert advance_to_rest(run).status == "completed"
    return run


def asked_again(ledger: str, **policy: Any) -> tuple[Run, Gate]:
    """The same, sent back with feedback: it asks about another offer."""
    run = told_once(ledger, **policy)
    rewind(run, to=1, feedback="cheaper")
    advance_to_rest(run)
    return run, open_gate(run)


def unconfirmed(gate: Gate, by: Any, verdict: str = "approve", **said: Any) -> RepeatNotConfirmed:
    """Decide without confirming anything, and get told what has to be confirmed."""
    [refused] = race([partial(decide_run, gate.run, verdict, by=by, confirm=[], **said)])
    assert isinstance(refused, RepeatNotConfirmed), refused
    return refused


def told_at(run: Run) -> tuple[int, int]:
    """(number of the effect, checkpoint) of what was told."""
    return Effect.objects.get(run=run, step="tell").pk, after(run, "tell")


def test_a_yes_that_tells_the_guest_again_is_refused_until_that_is_confirmed_and_what_is_undone_first_is_not_asked(
    ledger: str,
) -> None:
    run, gate = asked_again(ledger)
    told = GateImpacts(gate, gate.standing().card, []).approve()
    assert [each.step for each in told.repeats] == ["tell"]
    assert {row.step for row in told.undone} == {"book", "pay"}
    effect, at = told_at(run)
    refused = unconfirmed(gate, ann(run.team))
    assert [each.effect for each in refused.repeats] == [effect]
    assert f"(checkpoint {at}). Approving may do it again. Confirm that" in str(refused)
    [event] = Event.objects.filter(subject=gate.subject, kind="decision.refused")
    assert json.loads(bytes(event.data))["effects"] == [effect]
    assert Gate.objects.get(pk=gate.pk).status == "open"
    made = decide_run(run, confirm=[effect])
    assert made.confirmed == {effect}
    assert advance_to_rest(run).status == "completed"
    assert [line.split()[0] for line in lines(ledger)].count("tell") == 2
    [said] = Event.objects.filter(subject=gate.subject, kind="gate.decided")
    assert json.loads(bytes(said.data))["repeats"] == [effect]


def test_the_page_says_it_with_time_and_place_and_a_box_that_has_to_be_ticked(ledger: str) -> None:
    run, gate = asked_again(ledger)
    effect, at = told_at(run)
    by = ann(run.team)
    page = signed_in(by).get(f"/gates/{gate.pk}/").content.decode()
    clock = timezone.localtime(Effect.objects.get(pk=effect).intended_at)
    assert f"{TOLD_AGAIN} at {clock:%H:%M}" in page
    assert f"(checkpoint {at})" in page
    box = f"confirm.{effect}.approve"
    assert f'name="{box}"' in page
    form = form_of(gate, comment="Cheaper is fine.")
    assert form[box] == "yes"
    unticked = {name: text for name, text in form.items() if name != box}
    for junk in ("x", "-1", "9" * 30, "1,x"):
        assert post(by, gate, unticked | {f"confirm.{junk}.approve": "yes"}).status_code == 422, junk
    refused = post(by, gate, unticked)
    assert refused.status_code == 422
    again = refused.content.decode()
    assert "Tick the box to confirm it" in again
    assert "data-missing" in again
    assert "Cheaper is fine." in again
    assert post(by, gate, form).status_code == 303


def test_a_yes_to_what_was_done_already_says_that_nothing_runs(ledger: str) -> None:
    """The page said "Books, pays and tells, each once", and above it that the run ends and runs nothing."""
    run = told_once(ledger)
    rewind(run, to=before(run, "review"))
    advance_to_rest(run)
    gate = open_gate(run)
    page = signed_in(ann(run.team)).get(f"/gates/{gate.pk}/").content.decode()
    assert "Nothing runs. Finished actions are not undone" in page
    assert ">Approve: finished actions are not undone<" in page
    decide_run(run)
    assert advance_to_rest(run).status == "completed"
    assert lines(ledger, words=1) == ["book", "pay", "tell"]


def test_a_no_needs_no_confirmation_nor_does_an_edit_that_takes_it_all_over(ledger: str) -> None:
    run, _ = asked_again(ledger)
    assert decide_run(run, "reject", confirm=[], then="stop").then == "stop"
    other, _ = asked_again(ledger + "2")
    decide_run(other, "edit", arguments={"offer": 10}, confirm=[])
    assert advance_to_rest(other).status == "completed"
    assert [each for each in fates(other) if each[1] == "undone"] == []
    assert [line.split()[0] for line in lines(ledger + "2")].count("tell") == 1


def test_a_yes_from_before_it_was_done_lapses_where_the_last_one_confirms_it(ledger: str) -> None:
    """Two had to agree that the guest is told a second time; the first had agreed to a first time."""
    team = make_team()
    make_policy(team, name="default", quorum=2)
    origin = advance_to_rest(make_run("booking", ledger=ledger, team=team))
    fork = advance_to_rest(forks.fork(origin, at=1, by=make_user("Forker", team), patch=[
        {"op": "replace", "path": "/size", "value": 3}]))  # fmt: skip
    gate = open_gate(origin)
    first, last = ann(team), bob(team)
    decide_run(origin, by=first, confirm=[])
    for person in (first, last):
        decide_run(fork, by=person)
    assert advance_to_rest(fork).status == "completed"
    done = list(Effect.objects.filter(run=fork).values_list("pk", flat=True))
    refused = unconfirmed(gate, last)
    assert {each.effect for each in refused.repeats} == set(done)
    assert f"R-{fork.pk}, checkpoint" in str(refused)
    decide_run(origin, by=last, confirm=done)
    gate.refresh_from_db()
    assert gate.status == "open"
    assert [(each.user, each.counts) for each in Decision.objects.filter(gate=gate).order_by("pk")] == [
        (first, False), (last, True),
    ]  # fmt: skip
    assert Event.objects.filter(subject=gate.subject, kind="gate.lapsed").count() == 1
    page = signed_in(first).get(f"/gates/{gate.pk}/").content.decode()
    assert "Not counted any more; may approve again" in page
    decide_run(origin, by=first, confirm=done)
    gate.refresh_from_db()
    assert gate.status == "decided"


def test_a_fork_with_another_offer_is_told_what_its_origin_did(ledger: str) -> None:
    origin = told_once(ledger)
    patch = [{"op": "replace", "path": "/size", "value": 3}]
    fork = advance_to_rest(forks.fork(origin, at=1, by=make_user("Forker", origin.team), patch=patch))
    gate = open_gate(fork)
    [told] = impact_sources.beside([gate]).values()
    assert {(each.run, each.step) for each in told} == {(origin.pk, "book"), (origin.pk, "pay"), (origin.pk, "tell")}
    refused = unconfirmed(gate, ann(fork.team))
    assert [each.step for each in refused.repeats] == ["book", "pay", "tell"]
    assert f"(R-{origin.pk}, checkpoint " in str(refused)
    decide_run(fork, confirm=[each.effect for each in refused.repeats])
    assert advance_to_rest(fork).status == "completed"


def test_the_inbox_names_what_was_done_again_on_order_as_the_gate_does(ledger: str) -> None:
    """The gate asked to confirm an abandoned effect that was not redone yet, and its row in the inbox left it out."""
    run, gate = asked_again(ledger)
    change_effects(Effect.objects.filter(run=run, step="book"), status="abandoned", landings=[])
    change_effects(Effect.objects.filter(run=run, step="tell"), status="unknown", landings=[])
    told = GateImpacts(gate, gate.standing().card, []).approve()
    [beside] = impact_sources.beside([gate]).values()
    assert {each.effect for each in beside} == {each.effect for each in told.repeats}
    assert [each.done for each in beside if each.step == "book"] == [False]
    refused = unconfirmed(gate, ann(run.team))
    assert "Nobody knows whether “Tell” was already done" in str(refused)
    assert {each.step: each.done for each in refused.repeats}["tell"] is False


def test_a_deadline_lets_nothing_be_done_once_more(ledger: str) -> None:
    _, gate = asked_again(ledger, on_expiry=Policy.OnExpiry.APPROVE)
    pass_deadline(gate)
    outcome = closing.expire(gate)
    assert outcome is not None
    assert outcome.kind == "expired"
    assert not outcome.grants.exists()


def test_over_the_api_it_is_named_and_confirmed_by_number(ledger: str) -> None:
    run, gate = asked_again(ledger)
    effect, at = told_at(run)
    by = ann(run.team)
    told = ask(by, f"/api/gates/{gate.pk}/impacts")["items"][0]
    [named] = told["impact"]["repeats"]
    assert named | {
        "effect": effect, "step": "tell", "title": "Tell", "run": run.pk, "checkpoint": at, "done": True,
        "irreversible": True,
    } == named  # fmt: skip
    problem = refusal(post_json(by, gate, verdict="approve", shown=told["shown"]), 422)
    assert (problem["code"], problem["errors"]) == (
        "needs_confirmation", [{"parameter": "/confirm", "detail": f"must name {effect}"}],
    )  # fmt: skip
    assert TOLD_AGAIN in problem["detail"]
    assert post_json(by, gate, verdict="approve", shown=told["shown"], confirm=[effect]).status_code == 201


def asked_once_more(ledger: str) -> tuple[Run, Gate]:
    """A booking that was approved, booked, charged and told, and is asked about once more: its effects are left."""
    team = make_team()
    Policy.objects.filter(pk=make_policy(team, name="default").pk).update(bulk_risk="medium")
    run = advance_to_rest(make_run("booking", ledger=ledger, team=team))
    decide_run(run)
    advance_to_rest(run)
    rewind(run, to=1, feedback="cheaper")
    advance_to_rest(run)
    return run, open_gate(run)


def words_of(page: str) -> str:
    return " ".join(re.sub("<[^>]+>", "", page).split())


def test_what_a_rejection_undoes_is_on_the_list_and_no_more_than_that_is_undone(ledger: str) -> None:
    """It said that nothing runs, and the money was given back."""
    run, gate = asked_once_more(ledger)
    client = signed_in(ann(run.team))
    page = preview(client, [gate], "reject")
    assert "The run stops as rejected; “Pay” and “Book” are undone" in words_of(page)
    told = form(page, verdict="reject", then="stop", second_look="")
    number, seen, shown = told["choice"][0].split(":")
    less = {**told, "choice": [f"{number}:{seen}:{shown[:32]}"]}  # as if the list had named less
    assert "The effect of your decision changed after you opened this page." in words_of(send(client, less))
    assert Gate.objects.get(pk=gate.pk).status == "open"
    assert "refund" not in Path(ledger).read_text()
    send(client, form(preview(client, [gate], "reject"), verdict="reject", then="stop", second_look=""))
    advance_to_rest(run)
    assert [line.split()[0] for line in lines(ledger)] == ["book", "pay", "tell", "refund", "unbook"]


def test_nothing_is_performed_before_the_sweeper_ends_the_window_and_once_after_it(ledger: str) -> None:
    team = make_team()
    make_policy(team, name="default", undo_window=WINDOW)
    run = advance_to_rest(make_run("booking", ledger=ledger, team=team))
    gate = open_gate(run)
    decide_run(run)
    before = lines(ledger)
    assert advance_to_rest(run).status == "waiting"
    assert lines(ledger) == before
    assert not Effect.objects.filter(run=run).exists()
    pass_window(gate)
    assert Sweeper().sweep_once()["settled"] >= 1  # other tests may have left some
    assert now(gate).status == "decided"
    assert advance_to_rest(run).status == "completed"
    assert len(lines(ledger)) == len(set(lines(ledger))) > len(before)


def test_what_would_be_repeated_by_then_and_nobody_confirmed_is_not_let_run(ledger: str) -> None:
    """A fork booked the same within the window: the approval would have booked it twice."""
    team = make_team()
    make_policy(team, name="default", undo_window=WINDOW)
    later = advance_to_rest(make_run("booking", ledger=ledger, team=team))
    other = open_gate(later)
    branch = advance_to_rest(forks.fork(later, at=1, by=make_user("Forker", team), patch=[
        {"op": "replace", "path": "/size", "value": 3}]))  # fmt: skip
    person = ann(team)
    decide_run(later, by=person, confirm=[])
    decide_run(branch, by=person)
    end_window(open_gate(branch))
    assert advance_to_rest(branch).status == "completed"
    assert end_window(other)
    assert now(other).status == "open"
    assert now(other).settles_at is None
    assert not Decision.objects.get(gate=other).counts
    done = list(Effect.objects.filter(run=branch).values_list("pk", flat=True))
    decide_run(later, by=person, confirm=done)
    assert end_window(other)
    assert now(other).status == "decided"


def of_two(**more: Any) -> tuple[Gate, User, User]:
    team = make_team()
    return make_gate(policy=make_policy(team, quorum=2), **more), ann(team), bob(team)


def test_a_vote_that_became_the_last_one_is_refused_and_shown_anew_with_what_was_typed() -> None:
    """The panel said that one more had to agree; the press paid and mailed at once."""
    gate, first, second = of_two()
    form = form_of(gate, comment="Looks right to me.")
    decide(gate, first)
    silent = {name: text for name, text in form.items() if not name.startswith("shown.")}
    assert post(second, gate, silent).status_code == 409, "a page that says nothing of what it showed"
    refused = post(second, gate, form)
    assert refused.status_code == 409
    page = refused.content.decode()
    assert "Yours is now the last approval needed" in page
    assert "Looks right to me." in page
    assert "Yours is the last approval needed: it takes effect immediately" in page
    gate.refresh_from_db()
    assert (gate.status, gate.decisions.count()) == ("open", 1)
    event = Event.objects.filter(subject=gate.subject, kind="decision.refused").latest("pk")
    assert json.loads(bytes(event.data)) | {"kind": "impact_changed", "last": True} == json.loads(bytes(event.data))
    again = form_of(gate, comment="Looks right to me.", key=form["key"])
    assert post(second, gate, again).status_code == 303
    assert Outcome.objects.get(gate=gate).kind == "approved"


def test_of_two_votes_at_the_same_time_one_is_told_that_it_has_become_the_last() -> None:
    team = make_team()
    people = [make_user(f"Reviewer {number}", team) for number in range(2)]
    for _ in range(2):
        gate = make_gate(policy=make_policy(team, quorum=2, name=f"two-{_}"))
        shown = shown_of(gate)["shown.approve"]
        results = race([partial(decide, gate, person, shown=shown) for person in people])
        assert sorted(type(each).__name__ for each in results) == ["ConsequencesChanged", "Decision"]
        gate.refresh_from_db()
        assert (gate.status, gate.decisions.count()) == ("open", 1)


def test_an_edit_is_the_first_vote_on_what_it_makes_so_it_waits_whatever_was_shown() -> None:
    gate, first, second = of_two()
    form = form_of(gate, "edit", **{"args.refund/amount": "80.00"})
    decide(gate, first)
    assert post(second, gate, form).status_code == 303
    gate.refresh_from_db()
    assert (gate.status, gate.proposal) == ("open", 2)
    decide(gate, first, "edit", arguments=edit_amount(gate, "70.00"))
    gate.refresh_from_db()
    assert (gate.status, gate.proposal) == ("open", 3)


def test_over_the_api_a_decision_carries_what_was_foretold_and_a_token_is_held_to_the_same() -> None:
    gate, first, second = of_two()
    told = ask(second, f"/api/gates/{gate.pk}/impacts")["items"][0]
    assert (told["choice"], told["left"]) == ("approve", 1)
    assert post_json(first, gate, verdict="approve").status_code == 201
    problem = refusal(post_json(second, gate, verdict="approve", shown=told["shown"]), 409)
    assert (problem["code"], problem["impact"]["asks"]) == ("impact_changed", "")
    assert "last approval needed" in problem["detail"]
    assert ask(second, f"/api/gates/{gate.pk}/impacts")["items"][0]["left"] == 0
    client, address = bearing(make_token(second)[1]), f"/api/gates/{gate.pk}/decisions"
    body = {"seen": bytes(gate.standing().digest).hex(), "verdict": "approve"}
    for shown, status in (({"shown": told["shown"]}, 409), ({"shown": "zz"}, 422), ({}, 201)):
        assert client.post(address, {**body, **shown}, content_type="application/json").status_code == status
    gate.refresh_from_db()
    assert gate.status == "decided"


def told(html: str) -> str:
    """The words of a page, without the marks that set foreign ones apart."""
    return text_of(re.sub("</?bdi>", "", html))


def test_an_answer_is_named_to_whoever_still_has_the_question_open() -> None:
    """It was called an edit and shown as JSON, and nobody was told which answer to agree to."""
    team = make_team()
    gate = make_gate(policy=make_policy(team, quorum=2, name="default"), kind="recovery")
    first, second = ann(team), bob(team)
    before = form_of(gate, "answer", answer="not_happened")
    assert post(first, gate, before).status_code == 303
    reader = signed_in(second)
    news = told(reader.get(f"/gates/{gate.pk}/status/?seen=1").content.decode())
    assert "Ann Okafor answered “It did not” while you had it open." in news
    assert "null" not in news
    refused = post(second, gate, before)
    assert refused.status_code == 409
    assert "Ann Okafor answered “It did not” after you opened it. Agree to that answer, or give another one." in told(
        refused.content.decode()
    )
    page = reader.get(f"/gates/{gate.pk}/").content.decode()
    assert "Ann Okafor answered this" in told(page)
    assert "Answered “It did not”" in told(page)
    assert re.search(r'value="not_happened"[^>]*data-sends="Send “It did not” \(2 of 2\)"', page)
    assert re.search(r'value="happened"[^>]*data-sends="Send “[^”]+” \(1 of 2\)"', page)
    gate.refresh_from_db()
    assert post(second, gate, form_of(gate, "answer", answer="not_happened")).status_code == 303
    gate.refresh_from_db()
    assert gate.status == "decided"
