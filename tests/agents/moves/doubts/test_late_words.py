"""What a fenced worker says of its effect, where people have said something of it, or of another, before."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

from agents.effects import late_reports
from agents.models import Effect
from checkpoints import crash_points
from checkpoints.models import Event, Run
from checkpoints.values.canonical_json import decode_canonical
from tests.agents.moves.moved_runs import edit, fates, lease_over, lines
from tests.factories import change_effects
from tests.factories.driven_runs import advance, advance_to_rest, answer, make_run, open_gate

from .stopped_worker import working


def contradictions(run: Run) -> list[tuple[str, str]]:
    """(said, status) of what somebody said against how an effect was settled."""
    events = Event.objects.filter(run_id=run.pk, kind="effect.contradicted").order_by("pk")
    told = [decode_canonical(bytes(event.data)) for event in events]
    return [(data["said"], data["status"]) for data in told]


def test_an_undo_that_was_done_after_a_person_kept_the_effect_is_told(ledger: str) -> None:
    """The ledger said kept, the world said sold, and nobody heard of it."""
    run = advance_to_rest(make_run("trip", ledger=ledger))
    edit(run, 1, mode="skip")

    def keep(name: str, step: str, value: Any) -> None:
        """While the worker stands still right after the undo, another one asks, and a person answers."""
        if name == "after_undo":
            lease_over(run)
            advance(run)
            answer(run, "keep")
            advance_to_rest(run)

    crash_points.listen(keep)
    assert advance(run).status == "completed"
    assert lines(ledger, words=1) == ["buy", "sell"]
    assert (fates(run)[0], contradictions(run)) == (("buy", "kept"), [("undone", "kept")])


def test_a_worker_that_denies_what_a_person_says_happened_has_people_asked(ledger: str, opening: Path) -> None:
    """The answer could not be applied any more, and every worker that came tried it again, for ever."""
    run = make_run("doubter", ledger=ledger, gate=str(opening), end="refused")
    with working(run, ledger) as worker:
        worker.send_signal(signal.SIGSTOP)
        lease_over(run)
        advance(run)
        answer(run, "happened", {"receipt": "R"})
        opening.touch()
        worker.send_signal(signal.SIGCONT)
        assert worker.wait(30) == 0
    assert advance(run).status == "waiting"
    summary = open_gate(run).standing().card.summary
    assert "said that it happened; its worker, that it did not" in summary
    assert (fates(run), contradictions(run)) == ([("send", "failed")], [("done", "failed")])
    assert lines(ledger, words=1) == ["send"]


def test_a_late_word_about_one_effect_leaves_the_question_about_another_of_its_step_open(ledger: str) -> None:
    """The question was withdrawn by a word about something else, and the run ended as failed."""
    run = advance_to_rest(make_run("payments", ledger=ledger, people=["A", "B"]))
    change_effects(Effect.objects.filter(run=run), status="unknown", result=b"null")
    edit(run, 1, people=[])
    advance_to_rest(run)
    gate = open_gate(run)
    (other,) = Effect.objects.select_related("run").filter(run=run).exclude(key=gate.asked.question["effect"])  # type: ignore[index]
    late_reports.done(other, {"receipt": "late"})
    gate.refresh_from_db()
    assert gate.status == "open"
    answer(run, "was_not_done")
    assert advance_to_rest(run).status == "completed"
    assert lines(ledger)[2:] == ["cancel late"]
