"""Stories of runs, drawn up by hand: the pure tests lay them out."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from agents.models import Failure
from agents.pages.run.facts import (
    LedgerRow,
    Story,
    TimelineCheckpoint,
    TimelineDecision,
    TimelineFork,
    TimelineGate,
)
from checkpoints.models import Run
from checkpoints.runs.plans import StepSpec

NOON = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)
PLAN = (
    StepSpec("read_mail"),
    StepSpec("propose"),
    StepSpec("review", kind="gate"),
    StepSpec("pay", kind="effect", undo="cancel_payment", guarded=True),
    StepSpec("reply", kind="effect", irreversible=True, guarded=True),
)


def key(seq: int) -> str:
    """The id of the checkpoint `seq`, in hex."""
    return UUID(int=seq).hex


def make_saved(
    seq: int, step: str, *, parent: int | None = None, kind: str = "step", **more: Any
) -> TimelineCheckpoint:
    """The checkpoint `seq`, after the one before it unless `parent` names another."""
    after = seq - 1 if parent is None else parent
    times: dict[str, Any] = {"at": NOON + timedelta(seconds=seq), "took": timedelta(milliseconds=400)}
    return TimelineCheckpoint(
        id=key(seq), seq=seq, parent=key(after) if after else "", kind=kind, step=step, **(times | more)
    )


def make_gate(base: int, **more: Any) -> TimelineGate:
    """A gate at `review` on the state of the checkpoint `base`, open for 25 minutes."""
    facts: dict[str, Any] = {
        "id": base, "base": key(base), "step": "review", "kind": "review", "status": "open", "title": "Refund?",
        "opened_at": NOON - timedelta(minutes=25),
    }  # fmt: skip
    return TimelineGate(**(facts | more))


def make_decided(base: int, outcome: str, *said: TimelineDecision, **more: Any) -> TimelineGate:
    """A gate that was closed at noon."""
    return make_gate(base, status="decided", outcome=outcome, decisions=said, closed_at=NOON, **more)


def make_story(
    saved: list[TimelineCheckpoint], path: list[int], *, status: str = "waiting", next_step: str = "", **more: Any
) -> Story:
    """A story whose head is the last of `path`."""
    of_run = ("reason", "attempts", "wake_at", "settling", "ending", "halt")
    columns: dict[str, Any] = {name: more.pop(name) for name in of_run if name in more}
    columns |= {"frozen_at": NOON} if more.pop("frozen", False) else {}
    run = Run(status=status, next_step=next_step, **columns)
    ids = frozenset(map(key, path))
    facts: dict[str, Any] = {"plan": PLAN, "started_by": "Ann Okafor"}
    return Story(now=NOON, run=run, head=key(path[-1]), saved=tuple(saved), path=ids, **(facts | more))


def make_failure(base: int, step: str, attempt: int = 1) -> Failure:
    """One attempt that ended in an exception."""
    told: dict[str, Any] = {"error": "ValueError: no order", "traceback": "Traceback …".encode()}
    return Failure(base=UUID(int=base), step=step, attempt=attempt, at=NOON, **told)


def make_effect(base: int, step: str, status: str = "done", **more: Any) -> LedgerRow:
    """One row of the effect ledger."""
    facts: dict[str, Any] = {"irreversible": False, "key": "ab" * 32, "status": status}
    return LedgerRow(step=step, base=key(base), **(facts | more))


def make_fork(origin: int, run: int = 31) -> TimelineFork:
    """A run that started from the checkpoint `origin`."""
    return TimelineFork(run, key(origin), "completed", NOON, "Bob Lindqvist")


OPENING = [make_saved(1, "input", kind="input"), make_saved(2, "read_mail"), make_saved(3, "propose")]
REJECTED = [
    *OPENING,
    make_saved(4, "review", kind="gate"),
    make_saved(5, "rewind", kind="rewind", parent=2),
    make_saved(6, "propose"),
]
BOB_REJECTS = TimelineDecision("Bob", "reject", "Only the second came back.")
REJECTION = make_decided(3, "rejected", BOB_REJECTS, then="back", back_to="propose")
