"""What moves have to bear: minds changed at the worst moment, refusals before anything is written, changes by hand."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agents.definition import registry
from agents.errors import ImpactChanged, RewindNotAllowed, RewindRefused
from agents.models import Effect
from agents.moves import cancel, fork, impact
from agents.moves import rewind as rewinds
from approvals.consequences.gate import GateImpacts
from approvals.impact import Impact, ImpactVerdict
from approvals.models import Gate
from checkpoints.actors import SYSTEM
from checkpoints.errors import Fenced
from checkpoints.models import Checkpoint, Event, Run
from checkpoints.models.checkpoint import Note
from checkpoints.store import claims
from tests.agents.moves.moved_runs import after, before, die, edit, fates, lines, rewind
from tests.factories import ann, change_effects, eve
from tests.factories.driven_runs import advance, advance_to_rest, answer, decide, make_run, open_gate, state, trail
from tests.harness.racing_threads import meet_lock, race


def skipped(ledger: str, flag: Path) -> Run:
    """A trip that bought a ticket, goes without it now, and could not sell it: a person is asked."""
    run = advance_to_rest(make_run("trip", ledger=ledger, undo_flag=str(flag)))
    flag.touch()
    edit(run, 1, mode="skip")
    assert advance_to_rest(run).status == "waiting"
    return run


def test_an_answer_about_an_undo_counts_where_the_effect_would_be_adopted_at_the_head(
    ledger: str, tmp_path: Path
) -> None:
    """The answer was taken for a late report: the run went to the effect, and what was undone by hand was undone."""
    run = skipped(ledger, tmp_path / "undo")
    answer(run, "undone")
    assert advance_to_rest(run).status == "completed"
    assert lines(ledger, words=1) == ["buy"]
    assert fates(run) == [("buy", "undone"), ("undo of buy", "failed")]


def left_open(ledger: str, flag: Path) -> Run:
    """A finished trip without a ticket, of which nobody knows whether one was bought."""
    flag.touch()
    run = advance_to_rest(make_run("trip", ledger=ledger, flag=str(flag)))
    edit(run, 1, mode="skip")
    advance_to_rest(run)
    answer(run, "left_open")
    assert advance_to_rest(run).status == "completed"
    return run


@pytest.mark.parametrize("to", [1, 2], ids=["choose", "buy"])
def test_what_was_left_open_is_asked_about_where_the_run_comes_to_it_again(
    ledger: str, tmp_path: Path, to: int
) -> None:
    """It was adopted as if it had been done, with a result that is none: the runner failed until it gave up."""
    run = left_open(ledger, tmp_path / "cut")
    told = impact.of_rewind(run, to)
    assert [row.step for row in told.asking] == ["buy"]
    assert not [row for row in told.rows if row.effect and row.verdict is ImpactVerdict.STANDS]
    rewind(run, to, seen=told.digest())
    advance_to_rest(run)
    assert (open_gate(run).step, open_gate(run).kind) == ("buy", "recovery")
    assert fates(run) == [("buy", "unknown")]
    answer(run, "happened", {"ticket": "T1"})
    assert advance_to_rest(run).status == "completed"
    assert (state(run)["ticket"], lines(ledger, words=1)) == ("T1", ["buy"])


def test_an_effect_that_was_ordered_again_stands_where_the_run_goes_back_to_after_it(ledger: str) -> None:
    """The order outlived the change of mind: what the state says is done was undone at the end."""
    run = advance_to_rest(make_run("booking", ledger=ledger))
    decide(run)
    advance_to_rest(run)
    rewind(run, before(run, "pay"))
    advance_to_rest(run)
    told = impact.of_rewind(run, after(run, "pay"))
    assert [(row.verdict, row.why) for row in told.rows if row.step == "pay"] == [(ImpactVerdict.STANDS, "path")]
    rewind(run, after(run, "pay"), confirm=True, seen=told.digest())
    advance_to_rest(run)
    decide(run)
    assert advance_to_rest(run).status == "completed"
    assert "refund" not in lines(ledger, words=1)
    assert fates(run)[1] == ("pay", "done")


def test_an_effect_whose_undo_nobody_saw_end_is_not_adopted(ledger: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker died right after the undo, a person sent the run back, and what had been undone was taken as done."""
    monkeypatch.setattr(rewinds, "HALT_SECONDS", 0.0)
    run = advance_to_rest(make_run("trip", ledger=ledger))
    edit(run, 1, mode="skip")
    die(run, "after_undo")
    assert lines(ledger, words=1) == ["buy", "sell"]
    assert "stands" not in [row.verdict for row in impact.of_rewind(run, 1).rows if row.step == "buy"]
    rewind(run, 1)
    advance_to_rest(run)
    assert open_gate(run).title.startswith("“Buy” is not undone")
    answer(run, "undone")
    assert advance_to_rest(run).status == "completed"
    assert lines(ledger, words=1) == ["buy", "sell", "buy"]
    assert [row.status for row in Effect.objects.filter(run=run, undoes=None).order_by("pk")] == ["undone", "done"]


def test_a_run_that_is_cancelled_while_it_asks_ends_as_cancelled(ledger: str, tmp_path: Path) -> None:
    """The withdrawn question made it end as failed, since nobody had answered."""
    flag = tmp_path / "cut"
    flag.touch()
    run = advance_to_rest(make_run("trip", ledger=ledger, flag=str(flag)))
    told = impact.of_edit(run, 1, [{"op": "replace", "path": "/mode", "value": "skip"}])
    assert (told.ends, [row.step for row in told.asking]) == (False, ["buy"])
    edit(run, 1, mode="skip", seen=told.digest())
    advance_to_rest(run)
    assert open_gate(run).title.startswith("Did “Buy” happen?")
    assert cancel.cancel(run, by=ann(run.team), reason="no trip")
    run = advance_to_rest(run)
    assert (run.status, run.settling, run.ending) == ("cancelled", False, "")


def test_undo_now_loses_no_decision_that_was_given_before(ledger: str, tmp_path: Path) -> None:
    """The undo failed, its question took the place of the gate that had been approved, and the gate asked again."""
    flag = tmp_path / "undo"
    run = advance_to_rest(make_run("booking", ledger=ledger, undo_flag=str(flag)))
    decide(run)
    advance_to_rest(run)
    flag.touch()
    edit(run, 1, size=2)
    advance_to_rest(run)
    decide(run)
    rewinds.settle_now(run, by=ann(run.team))
    advance_to_rest(run)
    assert open_gate(run).title.startswith("“Pay” is not undone")
    answer(run, "undo_again")
    assert advance_to_rest(run).status == "completed"
    assert lines(ledger, words=1)[3:] == ["refund", "unbook", "book", "pay", "tell"]


def test_a_move_is_refused_with_a_sentence(ledger: str) -> None:
    run = advance_to_rest(make_run("chain", ledger=ledger))
    stranger, by = eve(), ann(run.team)
    moves: list[Callable[[], object]] = [
        lambda: rewinds.rewind(run, to=1, by=stranger),
        lambda: rewinds.edit(run, at=1, patch=[], by=stranger),
        lambda: rewinds.settle_now(run, by=stranger),
        lambda: fork.fork(run, at=1, by=stranger),
    ]
    for move in moves:
        with pytest.raises(RewindNotAllowed):
            move()
    with pytest.raises(RewindRefused, match="ended at checkpoint 6"):
        rewind(run, 6)
    for at, sentence in ((99, "no checkpoint 99"), (6, "ended at checkpoint 6")):
        with pytest.raises(RewindRefused, match=sentence):
            fork.fork(run, at=at, by=by)
    with pytest.raises(RewindRefused, match="no agent named chain 7"):
        fork.fork(run, at=1, by=by, version="7")
    with pytest.raises(RewindRefused) as refused:
        fork.fork(run, at=1, by=by, patch=[{"op": "replace", "path": "/a", "value": "many"}])
    assert refused.value.errors[0]["pointer"] == "/a"


@pytest.mark.parametrize(
    ("patch", "pointer"),
    [
        ([{"op": "replace", "path": "/a", "value": "many"}], "/a"),
        ([{"op": "add", "path": "/unheard", "value": 1}], None),
        ([{"op": "replace", "path": "/nothing/here", "value": 1}], "/nothing/here"),
        ([{"op": "test", "path": "/a", "value": 7}], "/a"),
        ([], None),
    ],
)
def test_an_edit_that_the_agent_does_not_take_writes_nothing(
    ledger: str, patch: list[dict[str, Any]], pointer: str | None
) -> None:
    run = advance_to_rest(make_run("chain", ledger=ledger))
    with pytest.raises(RewindRefused) as refused:
        rewinds.edit(run, at=1, patch=patch, by=ann(run.team))
    assert [each["pointer"] for each in refused.value.errors][:1] == ([pointer] if pointer else [])
    run.refresh_from_db()
    assert (run.status, run.seq) == ("completed", 6)


def test_what_was_shown_has_to_be_what_would_happen(ledger: str) -> None:
    run = advance_to_rest(make_run("booking", ledger=ledger))
    shown = impact.of_rewind(run, before(run, "plan")).digest()
    edit(run, before(run, "plan"), size=3)
    advance_to_rest(run)
    with pytest.raises(ImpactChanged) as changed:
        rewind(run, 2, seen=shown)
    assert changed.value.impact.digest() == impact.of_rewind(run, 2).digest()
    assert open_gate(run).status == "open"
    rewind(run, 2, seen=impact.of_rewind(run, 2).digest())
    assert advance_to_rest(run).status == "waiting"


def test_a_worker_that_was_at_it_is_fenced_and_the_move_stands(ledger: str, monkeypatch: pytest.MonkeyPatch) -> None:
    run = make_run("chain", ledger=ledger)
    claim = claims.claim(run.pk, plan_ids=list(registry.plans()), worker="stale", lease=30.0, by=SYSTEM)
    assert claim is not None
    run.refresh_from_db()
    monkeypatch.setattr(rewinds, "HALT_SECONDS", 0.0)
    edit(run, 1, b=9)
    with pytest.raises(Fenced):
        claims.release(claim, status="queued", by=SYSTEM)
    advance_to_rest(run)
    assert lines(ledger)[1] == "aside 9"
    kinds = Event.objects.filter(run_id=run.pk).values_list("kind", flat=True)
    assert {"run.halting", "run.taken", "run.edited"} <= set(kinds)


def test_of_moves_at_once_each_lands_one_after_the_other(ledger: str) -> None:
    run = advance_to_rest(make_run("booking", ledger=ledger))
    by = ann(run.team)
    moved = race([lambda: rewinds.rewind(Run.objects.get(pk=run.pk), to=1, by=by)] * 4)
    assert [type(each) for each in moved] == [Run] * 4
    rewound = Checkpoint.objects.filter(run=run, kind="rewind")
    assert (rewound.count(), len(set(rewound.values_list("seq", flat=True)))) == (4, 4)
    assert advance_to_rest(run).status == "waiting"


def test_a_state_that_tells_of_what_was_undone_since_is_not_gone_back_to(ledger: str) -> None:
    """The run would have gone on with a state that says "paid" while the payment had been taken back."""
    run = advance_to_rest(make_run("payments", ledger=ledger, people=["A", "B"]))
    paid = before(run, "keep")
    edit(run, 1, people=["C"])
    advance_to_rest(run)
    with pytest.raises(RewindRefused, match=r"pay is done, but it was undone since. Go back to checkpoint 2"):
        rewind(run, paid)
    with pytest.raises(RewindRefused, match="undone since"):
        fork.fork(run, at=paid, by=ann(run.team))
    rewind(run, 2)
    assert advance_to_rest(run).status == "completed"
    done = [line.split("-")[0] for line in lines(ledger)[2:]]
    assert done == ["pay C", "cancel B", "cancel A", "pay A", "pay B", "cancel C"]


def test_a_fork_that_begins_while_an_effect_is_being_undone_waits_and_is_refused(ledger: str) -> None:
    """It looked before the undo and began after it, on a state that says what is not so any more."""
    run = advance_to_rest(make_run("trip", ledger=ledger))
    row = Effect.objects.get(run=run)
    person, bought = ann(run.team), after(run, "buy")

    def undone() -> None:
        change_effects(Effect.objects.filter(pk=row.pk), status="undone")

    found = meet_lock(undone, lambda: fork.fork(run, at=bought, by=person))
    assert isinstance(found, RewindRefused)
    assert not Run.objects.filter(forked_from__isnull=False, lineage=run.pk).exists()


@pytest.fixture
def booked(ledger: str, settings: Any) -> Run:
    """A booking that was approved, and has not paid yet."""
    settings.HOLDPOINT_TIME_SLICE = 0  # a step at a time
    run = advance_to_rest(make_run("booking", ledger=ledger))
    decide(run)
    while run.next_step != "pay":
        run = advance(run)
    return run


def test_what_a_step_after_the_gate_wrote_and_a_person_changed_is_asked_about(booked: Run, ledger: str) -> None:
    """It was paid for with nobody asked: the approval fixed nothing that a step after the gate writes."""
    at = after(booked, "book")
    told = impact.of_edit(booked, at, [{"op": "replace", "path": "/room", "value": "the royal suite"}])
    assert previewed(told) == [("may", "pay", "permit"), ("will", "review", "permit")]
    assert told.asks == "review"
    edit(booked, at, room="the royal suite")
    run = advance_to_rest(booked)
    assert (run.status, trail(run)[-1]) == ("waiting", ("reopen", "pay"))
    assert "pay" not in lines(ledger, words=1)
    gate = open_gate(run)
    [changed] = [row for row in changes(gate) if row["pointer"] == "/room"]
    assert (changed["kind"], changed["after"], changed["before"][:5]) == ("changed", "the royal suite", "room ")
    notes = [bytes(text).decode() for text in Note.objects.filter(run=run).values_list("text", flat=True)]
    assert "Somebody changed room in the state after “Review” allowed “Pay”." in notes
    standing = gate.standing()
    assert previewed(GateImpacts(gate, standing.card, standing.state_patch).approve())[0] == ("will", "pay", "new")
    decide(run)
    assert advance_to_rest(run).status == "completed"
    assert [each for each in lines(ledger, words=4) if each.startswith("pay")] == ["pay the royal suite"]


def test_a_change_that_has_nothing_to_do_with_it_or_is_left_by_a_rewind_keeps_the_approval(
    booked: Run, ledger: str
) -> None:
    at = after(booked, "book")
    kept = impact.of_edit(booked, at, [{"op": "replace", "path": "/told", "value": "nobody yet"}])
    assert previewed(kept)[0] == ("will", "pay", "new")
    edit(booked, at, room="the royal suite")
    told = previewed(impact.of_rewind(booked, booked.seq))
    assert told[:2] == [("may", "pay", "permit"), ("will", "review", "permit")]
    assert previewed(impact.of_rewind(booked, at))[0] == ("will", "pay", "new")
    edit(booked, at, told="nobody yet", undo_flag="elsewhere")
    assert advance_to_rest(booked).status == "completed"
    assert lines(ledger, words=1) == ["book", "pay", "tell"]


@pytest.mark.parametrize("words", ["", "and gold"])
def test_the_words_of_a_rewind_are_a_change_too(ledger: str, settings: Any, words: str) -> None:
    """Somebody who may not decide told the agent what to send, after it was approved."""

    settings.HOLDPOINT_TIME_SLICE = 0
    run = advance_to_rest(make_run("letters", ledger=ledger))
    decide(run)
    while run.next_step != "send":
        run = advance(run)
    at = before(run, "draft")
    told = impact.of_rewind(run, at, words)
    rewind(run, at, feedback=words)
    run = advance_to_rest(run)
    if not words:
        assert ("will", "review", "permit") not in previewed(told)
        assert (run.status, lines(ledger)) == ("completed", ["send tea"])
        return
    assert previewed(told)[-2:] == [("may", "send", "permit"), ("will", "review", "permit")]
    assert (run.status, lines(ledger)) == ("waiting", [])
    assert [row["pointer"] for row in changes(open_gate(run))] == ["/feedback/0"]


def previewed(told: Impact) -> list[tuple[str, str, str]]:
    """(verdict, step, why) of what is to come."""
    return [(str(row.verdict), row.step, row.why) for row in told.ahead]


def changes(gate: Gate) -> list[dict[str, Any]]:
    """What the gate that was opened again shows as different."""
    reopened = gate.asked.reopened
    assert reopened is not None
    return [dict(row) for row in reopened["changes"]]


def test_why_it_was_changed_stands_behind_what_was_changed_in_the_list_of_words(booked: Run) -> None:
    """The words went to the list as it was before, and what the person had put into it was gone."""
    typed = [{"text": "Two more.", "by": "Ann", "gate": 4}]
    patch = [{"op": "add", "path": "/feedback", "value": typed}]
    rewinds.edit(booked, at=1, patch=patch, by=ann(booked.team), feedback="They asked for it.")
    *before_it, why = state(booked)["feedback"]
    assert before_it == typed
    assert (why["text"], why["by"]) == ("They asked for it.", "Ann Okafor")
