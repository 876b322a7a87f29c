"""Registry of the source of recorded histories: the app with the agents' code and the ledger of effects registers.

This app may not import those. Without a source no records are known, and an impact says that every step runs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from approvals.impact.facts import MoveTarget, RecordedHistory
from approvals.impact.result import Repeat
from approvals.models import Gate
from checkpoints.models import Run
from checkpoints.runs.plans import spec_of

Source = Callable[[Run], RecordedHistory]
Beside = Callable[[Sequence[Gate]], dict[int, list[Repeat]]]
_registered: list[tuple[Source, Callable[[Run], str], Beside]] = []


def register(source: Source, stamp: Callable[[Run], str], beside: Beside) -> None:
    """Register functions that read what a run's lineage recorded; see `history_of`, `stamp_of` and `beside`."""
    _registered.append((source, stamp, beside))


def history_of(run: Run) -> RecordedHistory:
    """Read what is recorded of the run's lineage. Needs the run's plan."""
    for source, *_ in _registered:
        return source(run)
    return RecordedHistory(plan=spec_of(run.plan), head=MoveTarget(run=run.pk, next_step=run.next_step))


def stamp_of(run: Run) -> str:
    """Return a text that changes when a run of the lineage begins or settles an effect."""
    return "".join(stamp(run) for _, stamp, _ in _registered)


def beside(gates: Sequence[Gate]) -> dict[int, list[Repeat]]:
    """List by gate the earlier effects that an approval would do once more, as far as that is cheap to find."""
    return {gate: rows for *_, look in _registered for gate, rows in look(gates).items()}
