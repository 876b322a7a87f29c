"""A worker that stood still past its lease comes back: it writes nothing, but what it says of its effect counts."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import pytest

from agents.models import Effect
from checkpoints.models import Checkpoint, Event
from checkpoints.values.canonical_json import decode_canonical
from tests.agents.moves.moved_runs import edit, fates, lease_over, lines
from tests.factories.driven_runs import advance, advance_to_rest, answer, make_run, open_gate

from .stopped_worker import working


def test_stopped_past_its_lease_and_continued_it_leaves_one_effect_and_one_checkpoint(
    ledger: str, opening: Path
) -> None:
    run = make_run("waiter", ledger=ledger, gate=str(opening))
    with working(run, ledger) as worker:
        worker.send_signal(signal.SIGSTOP)
        lease_over(run)
        opening.touch()
        assert advance_to_rest(run).status == "completed"
        worker.send_signal(signal.SIGCONT)
        assert worker.wait(30) == 0
    assert fates(run) == [("send", "done")]
    assert len(set(lines(ledger))) == 1, "one key, however often it was sent"
    assert Checkpoint.objects.filter(run=run, step="send").count() == 1
    assert Event.objects.filter(run_id=run.pk, kind="worker.fenced").count() == 1


@pytest.mark.parametrize(("end", "fate"), [("", "done"), ("refused", "failed")])
def test_its_late_word_answers_what_a_person_was_asked(ledger: str, opening: Path, end: str, fate: str) -> None:
    run = make_run("doubter", ledger=ledger, gate=str(opening), end=end)
    with working(run, ledger) as worker:
        worker.send_signal(signal.SIGSTOP)
        lease_over(run)
        gate = open_gate(advance(run))
        assert (gate.kind, fates(run)) == ("recovery", [("send", "unknown")])
        opening.touch()
        worker.send_signal(signal.SIGCONT)
        assert worker.wait(30) == 0
    gate.refresh_from_db()
    assert (gate.status, fates(run)) == ("withdrawn", [("send", fate)])
    run = advance_to_rest(run)
    ended: dict[str, Any] = {"done": ("completed", 1), "failed": ("waiting", 2)}
    assert (run.status, len(lines(ledger))) == ended[fate]


def test_a_run_that_moved_on_meanwhile_undoes_what_the_late_word_says_was_done(ledger: str, opening: Path) -> None:
    run = make_run("doubter", ledger=ledger, gate=str(opening))
    with working(run, ledger) as worker:
        worker.send_signal(signal.SIGSTOP)
        edit(run, 1, end="other")
        opening.touch()
        worker.send_signal(signal.SIGCONT)
        assert worker.wait(30) == 0
    assert fates(run) == [("send", "done")]
    assert advance_to_rest(run).status == "completed"
    assert lines(ledger, words=1) == ["send", "recall", "send"]
    assert [row.status for row in Effect.objects.filter(run=run, undoes=None).order_by("pk")] == ["undone", "done"]


def test_its_late_word_against_what_a_person_said_is_kept_for_people(ledger: str, opening: Path) -> None:
    run = make_run("doubter", ledger=ledger, gate=str(opening))
    with working(run, ledger) as worker:
        worker.send_signal(signal.SIGSTOP)
        lease_over(run)
        advance(run)
        answer(run, "not_happened")
        opening.touch()
        assert advance_to_rest(run).status == "completed"
        assert not Event.objects.filter(run_id=run.pk, kind="effect.contradicted").exists()
        worker.send_signal(signal.SIGCONT)
        assert worker.wait(30) == 0
    assert fates(run) == [("send", "failed"), ("send", "done")]
    event = Event.objects.get(run_id=run.pk, kind="effect.contradicted")
    data = decode_canonical(bytes(event.data))
    assert (data["said"], data["status"]) == ("done", "failed")
