"""What a rewind or an edit is refused for, before anything is written."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from django.db import connection

from agents.errors import ImpactChanged, RewindNotAllowed, RewindRefused
from agents.models import Effect
from agents.moves import fork, impact
from agents.moves import rewind as rewinds
from approvals.errors import Invalid
from checkpoints.actors import SYSTEM
from checkpoints.errors import Fenced
from checkpoints.models import Checkpoint, Event, Run
from checkpoints.store import claims
from tests.factories import ann, change_effects, eve
from tests.factories.driven_runs import advance_to_rest, decide, make_run, open_gate
from tests.harness.racing_threads import meet_lock

from .moved_runs import after, before, edit, lines, rewind


def test_only_those_who_may_rewind_do(ledger: str) -> None:
    run = advance_to_rest(make_run("chain", ledger=ledger))
    with pytest.raises(RewindNotAllowed):
        rewinds.rewind(run, to=1, by=eve())
    with pytest.raises(RewindNotAllowed):
        rewinds.edit(run, at=1, patch=[], by=eve())
    with pytest.raises(RewindNotAllowed):
        rewinds.settle_now(run, by=eve())


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


def test_a_run_that_ended_at_a_checkpoint_does_not_go_on_from_there(ledger: str) -> None:
    run = advance_to_rest(make_run("chain", ledger=ledger))
    with pytest.raises(RewindRefused, match="ended at checkpoint 6"):
        rewind(run, 6)


def test_a_worker_that_was_at_it_is_fenced_and_the_move_stands(ledger: str) -> None:
    run = make_run("chain", ledger=ledger)
    from agents.definition import registry

    claim = claims.claim(run.pk, plan_ids=list(registry.plans()), worker="stale", lease=30.0, by=SYSTEM)
    assert claim is not None
    run.refresh_from_db()
    rewinds.HALT_SECONDS, before_ = 0.0, rewinds.HALT_SECONDS
    try:
        edit(run, 1, b=9)
    finally:
        rewinds.HALT_SECONDS = before_
    with pytest.raises(Fenced):
        claims.release(claim, status="queued", by=SYSTEM)
    advance_to_rest(run)
    assert lines(ledger)[1] == "aside 9"
    kinds = Event.objects.filter(run_id=run.pk).values_list("kind", flat=True)
    assert {"run.halting", "run.taken", "run.edited"} <= set(kinds)


def test_of_two_moves_at_once_both_land_one_after_the_other(ledger: str) -> None:
    run = advance_to_rest(make_run("booking", ledger=ledger))
    by = ann(run.team)
    problems: list[BaseException] = []

    def move() -> None:
        try:
            rewinds.rewind(Run.objects.get(pk=run.pk), to=1, by=by)
        except BaseException as error:  # noqa: BLE001 - told by the test
            problems.append(error)
        finally:
            connection.close()

    threads = [threading.Thread(target=move) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []
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


def test_a_rejection_sends_no_run_back_to_what_cannot_be_undone(ledger: str) -> None:
    """One click at a gate did it a second time, without the confirmation that a rewind asks for."""
    run = advance_to_rest(make_run("announcer", ledger=ledger))
    assert open_gate(run).asked.back_to == ("write",)
    with pytest.raises(Invalid):
        decide(run, "reject", then="back", back_to="announce", comment="again")
    assert lines(ledger, words=1) == ["announce"]


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
