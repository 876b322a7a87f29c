"""Effects of which nobody knows what became: what is asked of whom, what workers say late, and what ends unanswered."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agents.effects import readback
from agents.errors import RewindRefused
from agents.models import Effect
from agents.moves import cancel
from agents.moves import rewind as rewinds
from approvals.gates import closing
from approvals.models import Gate
from checkpoints import crash_points
from checkpoints.models import Checkpoint, Event, Run
from checkpoints.values.canonical_json import decode_canonical
from tests.agents.moves.moved_runs import after, die, edit, fates, lease_over, lines, rewind
from tests.factories import ann, change_effects
from tests.factories.driven_runs import advance, advance_to_rest, answer, decide, make_run, open_gate, state
from tests.harness.services import Service
from tests.harness.waiting import until

WORK = "import django; django.setup(); from agents.runner import engine; engine.advance({})"


def meanwhile(point: str, do: Callable[[], object]) -> None:
    """Have the next worker that passes this crash point stand still there until `do` is done."""
    left = [do]

    def passed(name: str, step: str, value: Any) -> None:
        if name == point and left:
            left.pop()()

    crash_points.listen(passed)


def contradictions(run: Run) -> list[tuple[str, str]]:
    """(said, status) of what somebody said against how an effect was settled."""
    events = Event.objects.filter(run_id=run.pk, kind="effect.contradicted").order_by("pk")
    told = [decode_canonical(bytes(event.data)) for event in events]
    return [(data["said"], data["status"]) for data in told]


def test_stopped_past_its_lease_and_continued_it_leaves_one_effect_and_one_checkpoint(
    ledger: str, opening: Path
) -> None:
    run = make_run("waiter", ledger=ledger, gate=str(opening))
    known = {"DJANGO_SETTINGS_MODULE": "config.settings", "HOLDPOINT_AGENTS": "tests.agents.moves.moved_agents"}
    worker = Service("worker", [sys.executable, "-c", WORK.format(run.pk)], Path(ledger).parent, known)
    try:
        until(lambda: Path(ledger).exists(), what="the effect is under way")
        worker.process.send_signal(signal.SIGSTOP)
        lease_over(run)
        opening.touch()
        assert advance_to_rest(run).status == "completed"
        worker.process.send_signal(signal.SIGCONT)
        assert worker.process.wait(30) == 0
    finally:
        worker.kill()
    assert fates(run) == [("send", "done")]
    assert len(set(lines(ledger))) == 1, "one key, however often it was sent"
    assert Checkpoint.objects.filter(run=run, step="send").count() == 1
    assert Event.objects.filter(run_id=run.pk, kind="worker.fenced").count() == 1


@pytest.mark.parametrize(
    ("end", "fate", "status", "sent"), [("", "done", "completed", 1), ("refused", "failed", "waiting", 2)]
)
def test_a_late_word_answers_what_a_person_was_asked(
    ledger: str, opening: Path, end: str, fate: str, status: str, sent: int
) -> None:
    opening.touch()
    run, asked = make_run("doubter", ledger=ledger, gate=str(opening), end=end), list[Gate]()

    def another() -> None:
        lease_over(run)
        asked.append(open_gate(advance(run)))
        assert (asked[0].kind, fates(run)) == ("recovery", [("send", "unknown")])

    meanwhile("after_intent", another)
    advance(run)
    asked[0].refresh_from_db()
    assert (asked[0].status, fates(run)) == ("withdrawn", [("send", fate)])
    run = advance_to_rest(run)
    assert (run.status, len(lines(ledger))) == (status, sent)


def test_a_run_that_moved_on_meanwhile_undoes_what_the_late_word_says_was_done(
    ledger: str, opening: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rewinds, "HALT_SECONDS", 0.0)
    opening.touch()
    run = make_run("doubter", ledger=ledger, gate=str(opening))
    meanwhile("after_intent", lambda: edit(run, 1, end="other"))
    advance(run)
    assert fates(run) == [("send", "done")]
    assert advance_to_rest(run).status == "completed"
    assert lines(ledger, words=1) == ["send", "recall", "send"]
    assert [row.status for row in Effect.objects.filter(run=run, undoes=None).order_by("pk")] == ["undone", "done"]


def test_a_late_word_against_what_a_person_said_is_kept_for_people(ledger: str, opening: Path) -> None:
    opening.touch()
    run = make_run("doubter", ledger=ledger, gate=str(opening))

    def denied() -> None:
        lease_over(run)
        advance(run)
        answer(run, "not_happened")
        assert advance_to_rest(run).status == "completed"
        assert contradictions(run) == []

    meanwhile("after_intent", denied)
    advance(run)
    assert (fates(run), contradictions(run)) == ([("send", "failed"), ("send", "done")], [("done", "failed")])


def test_a_worker_that_denies_what_a_person_says_happened_has_people_asked(ledger: str, opening: Path) -> None:
    """The answer could not be applied any more, and every worker that came tried it again, for ever."""
    opening.touch()
    run = make_run("doubter", ledger=ledger, gate=str(opening), end="refused")

    def confirmed() -> None:
        lease_over(run)
        advance(run)
        answer(run, "happened", {"receipt": "R"})

    meanwhile("after_intent", confirmed)
    advance(run)
    assert advance(run).status == "waiting"
    summary = open_gate(run).standing().card.summary
    assert "said that it happened; its worker, that it did not" in summary
    assert (fates(run), contradictions(run)) == ([("send", "failed")], [("done", "failed")])
    assert lines(ledger, words=1) == ["send"]


def test_an_undo_that_was_done_after_a_person_kept_the_effect_is_told(ledger: str) -> None:
    """The ledger said kept, the world said sold, and nobody heard of it."""
    run = advance_to_rest(make_run("trip", ledger=ledger))
    edit(run, 1, mode="skip")

    def keep() -> None:
        lease_over(run)
        advance(run)
        answer(run, "keep")
        advance_to_rest(run)

    meanwhile("after_undo", keep)
    assert advance(run).status == "completed"
    assert lines(ledger, words=1) == ["buy", "sell"]
    assert (fates(run)[0], contradictions(run)) == (("buy", "kept"), [("undone", "kept")])


def test_a_late_word_about_one_effect_leaves_the_question_about_another_of_its_step_open(ledger: str) -> None:
    """The question was withdrawn by a word about something else, and the run ended as failed."""
    run = advance_to_rest(make_run("payments", ledger=ledger, people=["A", "B"]))
    change_effects(Effect.objects.filter(run=run), status="unknown", result=b"null")
    edit(run, 1, people=[])
    advance_to_rest(run)
    gate = open_gate(run)
    (other,) = Effect.objects.select_related("run").filter(run=run).exclude(key=gate.asked.question["effect"])  # type: ignore[index]
    readback.done(other, {"receipt": "late"})
    gate.refresh_from_db()
    assert gate.status == "open"
    answer(run, "was_not_done")
    assert advance_to_rest(run).status == "completed"
    assert lines(ledger)[2:] == ["cancel late"]


@pytest.fixture
def world(tmp_path: Path) -> str:
    """What the provider has done."""
    (tmp_path / "world").mkdir()
    return str(tmp_path / "world")


def test_what_nobody_knows_is_read_back_from_the_provider_or_else_asked_of_a_person(ledger: str, world: str) -> None:
    run = advance_to_rest(make_run("reader", ledger=ledger, world=world, mode="cut"))
    (row,) = Effect.objects.filter(run=run)
    assert (run.status, row.status, row.attempts, len(lines(ledger))) == ("completed", "done", 1, 1)
    assert state(run)["receipt"] == row.key
    Path(ledger).unlink()
    run = advance_to_rest(make_run("reader", ledger=ledger, world=world, mode="mute"))
    assert (run.status, open_gate(run).step, len(lines(ledger))) == ("waiting", "send", 1)


def test_a_no_is_believed_only_once_the_request_cannot_be_under_way_any_more(ledger: str, world: str) -> None:
    run = advance(make_run("reader", ledger=ledger, world=world, mode="lost"))
    assert run.status == "queued"
    assert (advance(run).status, len(lines(ledger))) == ("queued", 1)
    row = Effect.objects.get(run=run)
    Effect.objects.filter(pk=row.pk).update(intended_at=row.intended_at.replace(year=2020))
    assert advance_to_rest(run).status == "completed"
    assert lines(ledger) == [lines(ledger)[0]] * 2, "sent again under its key"


@pytest.mark.parametrize("how", ["in doubt", "refused"])
def test_an_undo_that_nobody_answers_about_is_not_asked_again_and_its_run_stays_completed(
    ledger: str, tmp_path: Path, how: str
) -> None:
    """Each deadline that passed had it asked once more, or begun anew; or the run ended as failed, as its undo had."""
    flag = tmp_path / "undo"
    run = advance_to_rest(make_run("trip", ledger=ledger, undo_flag=str(flag)))
    edit(run, 1, mode="skip")
    if how == "in doubt":
        die(run, "after_undo_intent")
    else:
        flag.touch()
    advance_to_rest(run)
    gate = open_gate(run)
    closing.pass_deadline(gate)
    assert closing.expire(gate) is not None
    advance_to_rest(run)
    assert (run.status, run.reason) == ("completed", "“Buy” is not settled; Nobody decided in time")
    assert fates(run) == [("buy", "done"), ("undo of buy", "unknown" if how == "in doubt" else "failed")]
    assert (lines(ledger, words=1), Gate.objects.filter(run=run).count()) == (["buy"], 1)


@pytest.mark.parametrize("how", ["in doubt", "refused"])
def test_a_cancel_while_an_undo_is_asked_about_settles_the_rest_and_names_that_one_as_kept(
    ledger: str, tmp_path: Path, how: str
) -> None:
    """The question went with the run's end, and the room stayed booked off the path, as what nobody had to settle."""
    flag = tmp_path / "undo"
    run = advance_to_rest(make_run("booking", ledger=ledger, undo_flag=str(flag)))
    decide(run)
    advance_to_rest(run)
    edit(run, 1, size=2)
    advance_to_rest(run)
    decide(run)
    if how == "in doubt":
        die(run, "after_undo")
    else:
        flag.touch()
    advance_to_rest(run)
    assert open_gate(run).title.startswith("“Pay” is not undone")
    cancel.cancel(run, by=ann(run.team), reason="no need")
    advance_to_rest(run)
    assert (run.status, run.reason) == ("cancelled", "no need")
    assert fates(run)[:3] == [("book", "undone"), ("pay", "kept"), ("tell", "kept")]


def test_what_an_undo_in_doubt_may_have_taken_back_is_not_gone_back_to_after_a_cancel(ledger: str) -> None:
    """The run went on with a ticket that had been sold: the cancelled question had taken the doubt with it."""
    run = advance_to_rest(make_run("trip", ledger=ledger))
    bought = after(run, "buy")
    edit(run, 1, mode="skip")
    die(run, "after_undo")
    advance_to_rest(run)
    assert open_gate(run).title.startswith("“Buy” is not undone")
    cancel.cancel(run, by=ann(run.team), reason="no need")
    assert advance_to_rest(run).status == "cancelled"
    with pytest.raises(RewindRefused, match="buy is done"):
        rewind(run, bought)
