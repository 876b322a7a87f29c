"""What was done before and stands is done once more only where whoever agrees to it says so."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import pytest
from django.utils import timezone

from agents.models import Effect
from agents.moves import fork as forks
from approvals.consequences import impact_sources
from approvals.consequences.errors import RepeatNotConfirmed
from approvals.consequences.gate import GateImpacts
from approvals.gates import closing
from approvals.gates.closing import pass_deadline
from approvals.models import Decision, Gate, Policy
from checkpoints.models import Event, Run
from tests.agents.api.sent_requests import ask
from tests.agents.api.test_deciding import post as post_json
from tests.agents.api.test_doors import refusal
from tests.agents.moves.moved_runs import after, before, fates, lines, rewind
from tests.factories import ann, bob, change_effects, make_policy, make_team, make_user
from tests.factories.driven_runs import advance_to_rest, decide, make_run, open_gate
from tests.harness.racing_threads import race
from tests.harness.signed_in_clients import form_of, post, signed_in

TOLD_AGAIN = "“Tell” was already done"


def told_once(ledger: str, **policy: Any) -> Run:
    """A booking that was agreed to, booked, charged and told."""
    team = make_team()
    make_policy(team, name="default", **policy)
    run = advance_to_rest(make_run("booking", ledger=ledger, team=team))
    for person in [ann(team), bob(team)][: policy.get("quorum", 1)]:
        decide(run, by=person)
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
    [refused] = race([partial(decide, gate.run, verdict, by=by, confirm=[], **said)])
    assert isinstance(refused, RepeatNotConfirmed), refused
    return refused


def told_at(run: Run) -> tuple[int, int]:
    """(number of the effect, checkpoint) of what was told."""
    return Effect.objects.get(run=run, step="tell").pk, after(run, "tell")


def test_a_yes_that_tells_the_guest_again_is_refused_until_that_is_confirmed(ledger: str) -> None:
    """The page said "book, pay, tell, once each", and the guest was told a second time."""
    run, gate = asked_again(ledger)
    effect, at = told_at(run)
    refused = unconfirmed(gate, ann(run.team))
    assert [each.effect for each in refused.repeats] == [effect]
    assert f"(checkpoint {at}). Approving may do it again. Confirm that" in str(refused)
    [event] = Event.objects.filter(subject=gate.subject, kind="decision.refused")
    assert json.loads(bytes(event.data))["effects"] == [effect]
    assert Gate.objects.get(pk=gate.pk).status == "open"
    made = decide(run, confirm=[effect])
    assert made.confirmed == {effect}
    assert advance_to_rest(run).status == "completed"
    assert [line.split()[0] for line in lines(ledger)].count("tell") == 2
    [said] = Event.objects.filter(subject=gate.subject, kind="gate.decided")
    assert json.loads(bytes(said.data))["repeats"] == [effect]


def test_what_is_undone_before_it_is_done_anew_needs_no_confirmation(ledger: str) -> None:
    _, gate = asked_again(ledger)
    told = GateImpacts(gate, gate.standing().card, []).approve()
    assert [each.step for each in told.repeats] == ["tell"]
    assert {row.step for row in told.undone} == {"book", "pay"}


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
    refused = post(by, gate, {name: text for name, text in form.items() if name != box})
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
    decide(run)
    assert advance_to_rest(run).status == "completed"
    assert lines(ledger, words=1) == ["book", "pay", "tell"]


def test_a_no_needs_no_confirmation_nor_does_an_edit_that_takes_it_all_over(ledger: str) -> None:
    run, _ = asked_again(ledger)
    assert decide(run, "reject", confirm=[], then="stop").then == "stop"
    other, _ = asked_again(ledger + "2")
    decide(other, "edit", arguments={"offer": 10}, confirm=[])
    assert advance_to_rest(other).status == "completed"
    assert [each for each in fates(other) if each[1] == "undone"] == []
    assert [line.split()[0] for line in lines(ledger + "2")].count("tell") == 1


def test_whoever_agrees_first_confirms_and_so_does_the_last(ledger: str) -> None:
    run, gate = asked_again(ledger, quorum=2)
    effect, _ = told_at(run)
    first, last = ann(run.team), bob(run.team)
    unconfirmed(gate, first)
    decide(run, by=first, confirm=[effect])
    unconfirmed(gate, last)
    decide(run, by=last, confirm=[effect])
    assert Gate.objects.get(pk=gate.pk).status == "decided"


def test_a_yes_from_before_it_was_done_lapses_where_the_last_one_confirms_it(ledger: str) -> None:
    """Two had to agree that the guest is told a second time; the first had agreed to a first time."""
    team = make_team()
    make_policy(team, name="default", quorum=2)
    origin = advance_to_rest(make_run("booking", ledger=ledger, team=team))
    fork = advance_to_rest(forks.fork(origin, at=1, by=make_user("Forker", team), patch=[
        {"op": "replace", "path": "/size", "value": 3}]))  # fmt: skip
    gate = open_gate(origin)
    first, last = ann(team), bob(team)
    decide(origin, by=first, confirm=[])
    for person in (first, last):
        decide(fork, by=person)
    assert advance_to_rest(fork).status == "completed"
    done = list(Effect.objects.filter(run=fork).values_list("pk", flat=True))
    refused = unconfirmed(gate, last)
    assert {each.effect for each in refused.repeats} == set(done)
    assert f"R-{fork.pk}, checkpoint" in str(refused)
    decide(origin, by=last, confirm=done)
    gate.refresh_from_db()
    assert gate.status == "open"
    assert [(each.user, each.counts) for each in Decision.objects.filter(gate=gate).order_by("pk")] == [
        (first, False), (last, True),
    ]  # fmt: skip
    assert Event.objects.filter(subject=gate.subject, kind="gate.lapsed").count() == 1
    page = signed_in(first).get(f"/gates/{gate.pk}/").content.decode()
    assert "Not counted any more; may approve again" in page
    decide(origin, by=first, confirm=done)
    gate.refresh_from_db()
    assert gate.status == "decided"


def test_a_fork_with_another_offer_is_told_what_its_origin_did(ledger: str) -> None:
    origin = told_once(ledger)
    patch = [{"op": "replace", "path": "/size", "value": 3}]
    fork = advance_to_rest(forks.fork(origin, at=1, by=make_user("Forker", origin.team), patch=patch))
    gate = open_gate(fork)
    refused = unconfirmed(gate, ann(fork.team))
    assert [each.step for each in refused.repeats] == ["book", "pay", "tell"]
    assert f"(R-{origin.pk}, checkpoint " in str(refused)
    decide(fork, confirm=[each.effect for each in refused.repeats])
    assert advance_to_rest(fork).status == "completed"


def test_a_fork_that_would_do_the_very_same_is_asked_about_that_later_and_not_here(ledger: str) -> None:
    origin = told_once(ledger)
    fork = advance_to_rest(forks.fork(origin, at=after(origin, "plan"), by=make_user("Forker", origin.team)))
    decide(fork, confirm=[])
    advance_to_rest(fork)
    assert open_gate(fork).kind == "recovery"


def test_what_nobody_knows_the_end_of_is_said_so(ledger: str) -> None:
    run, gate = asked_again(ledger)
    change_effects(Effect.objects.filter(run=run, step="tell"), status="unknown", landings=[])
    refused = unconfirmed(gate, ann(run.team))
    assert "Nobody knows whether “Tell” was already done" in str(refused)
    assert [each.done for each in refused.repeats] == [False]


@pytest.mark.parametrize("step", ["tell", "book"])
def test_the_inbox_names_what_was_done_again_on_order_as_the_gate_does(ledger: str, step: str) -> None:
    """The gate asked to confirm an abandoned effect that was not redone yet, and its row in the inbox left it out."""
    run, gate = asked_again(ledger)
    change_effects(Effect.objects.filter(run=run, step=step), status="abandoned", landings=[])
    told = GateImpacts(gate, gate.standing().card, []).approve()
    [beside] = impact_sources.beside([gate]).values()
    assert {each.effect for each in beside} == {each.effect for each in told.repeats}
    assert [each.done for each in beside if each.step == step] == [False]


def test_what_was_done_while_the_page_was_open_is_found_by_the_decision(ledger: str) -> None:
    """The box that was not there cannot have been ticked."""
    run = told_once(ledger)
    change_effects(Effect.objects.filter(run=run, step="tell"), status="failed")
    rewind(run, to=1, feedback="cheaper")
    advance_to_rest(run)
    gate = open_gate(run)
    form = form_of(gate)
    assert not any(name.startswith("confirm.") for name in form)
    change_effects(Effect.objects.filter(run=run, step="tell"), status="done")
    refused = post(ann(run.team), gate, form)
    assert refused.status_code == 422
    assert TOLD_AGAIN in refused.content.decode()


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


@pytest.mark.parametrize("junk", ["x", "-1", "9" * 30, "1,x"])
def test_junk_in_a_box_confirms_nothing(ledger: str, junk: str) -> None:
    run, gate = asked_again(ledger)
    form = {name: text for name, text in form_of(gate).items() if not name.startswith("confirm.")}
    assert post(ann(run.team), gate, form | {f"confirm.{junk}.approve": "yes"}).status_code == 422


def test_the_row_in_the_inbox_says_what_was_done_already(ledger: str) -> None:
    run, gate = asked_again(ledger)
    _, at = told_at(run)
    page = signed_in(ann(run.team)).get("/").content.decode()
    assert f"(checkpoint {at})" in page
    assert page.count("was already done") == 1, "what is undone first is not done twice"
    fresh = advance_to_rest(make_run("booking", ledger=ledger + "3", team=run.team))
    assert [gate for gate, _ in sorted(impact_sources.beside([gate, open_gate(fresh)]).items())] == [gate.pk]


def test_the_row_of_a_fork_names_the_run_that_did_it(ledger: str) -> None:
    origin = told_once(ledger)
    fork = advance_to_rest(forks.fork(origin, at=1, by=make_user("Forker", origin.team)))
    [told] = impact_sources.beside([open_gate(fork)]).values()
    assert {(each.run, each.step) for each in told} == {(origin.pk, "book"), (origin.pk, "pay"), (origin.pk, "tell")}
