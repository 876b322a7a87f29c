"""Waits for children and collects what became of them, by a rule: all of them, the first, or so many.

The step ends here by `Suspended` while too few have ended, and the run is released with the number of children that
have to end yet; the statement by which a child ends counts it down and queues the run (checkpoints.models.run_status).
That may be too early, never too late: the step starts again from its beginning and counts anew. The results are kept,
so that another child which ends later changes nothing of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from django.db import transaction

from agents.definition.agent import ChildResult, ChildRun
from agents.errors import AgentError, ChildFailed, Suspended
from agents.models import ChildLink, Memo
from agents.session import gates_beside, reuse
from agents.session.run_session import RunSession
from approvals.engine_rules import effects as rules
from approvals.english import count_of
from checkpoints import crash_points, store
from checkpoints.models import Run
from checkpoints.runs.plans import StepSpec
from checkpoints.values import digests
from checkpoints.values.canonical_json import decode_canonical

from . import orders

NAME = "gather"  # of the memo that keeps the results
LESS = "Gather fewer children at a time, or let them keep less in their states."
NEVER = datetime.max.replace(tzinfo=UTC)


@dataclass(frozen=True)
class Gathering:
    """The children, by their runs, of which `need` have to complete before the step goes on."""

    runs: tuple[int, ...]
    need: int

    def __str__(self) -> str:
        return f"{self.need} of {len(self.runs)} children"


class Gatherer:
    """The gathering of one execution. `base` returns the checkpoint from which the step was sent on."""

    def __init__(self, session: RunSession, spec: StepSpec, base: Callable[[], UUID]) -> None:
        self.session = session
        self.spec = spec
        self.suspended: Suspended | None = None
        self._base = base

    def gather(self, children: Sequence[ChildRun], need: str | int) -> list[ChildResult | None]:
        """Return the children's results, in their order. Raises Suspended, ChildFailed, AgentError, Fenced."""
        if len({child.run for child in children}) < len(children):
            raise AgentError("gather() takes each child once.")
        asked = Gathering(tuple(child.run for child in children), needed(need, len(children)))
        digest = digests.of_value([list(asked.runs), asked.need])
        kept = self._kept(digest)
        if kept is None:
            found = runs_of(self.session.run, asked)
            verdict = rules.gathered([run.status for run in found], asked.need)
            if verdict.missing:
                self.suspended = Suspended(asked)
                raise self.suspended
            if verdict.lost is not None:
                self._fail(found, verdict.lost)
            kept = self._keep(asked, digest, found)
        return [None if each is None else ChildResult(**each) for each in kept]

    def _fail(self, found: Sequence[Run], lost: int) -> None:
        """Tell the others to stop, and fail the step."""
        with transaction.atomic():
            self.session.hold_token()
            orders.cancel(self.session, [run.pk for run in found])
        run = found[lost]
        word = (
            f"R-{run.pk}, which the step waits for, failed."
            if run.status == Run.Status.FAILED
            else f"R-{run.pk}, which the step waits for, was cancelled."
        )
        raise ChildFailed(run.pk, f"{word} {run.reason}".strip())

    def _keep(self, asked: Gathering, digest: bytes, found: Sequence[Run]) -> list[dict[str, Any] | None]:
        """Keep the results, and tell the children that nobody needs to stop. Raises AgentError, Fenced."""
        with store.reading():
            store.expect([run.head for run in found if run.head])
            wanted = needed_of(found, asked.need)
            results = [result_of(run) if run.pk in wanted else None for run in found]
        row = Memo(
            run=self.session.run, base=self._base(), step=self.spec.name, name=NAME, digest=digest,
            result=reuse.packed("gather()", results, instead=LESS), token=self.session.claim.token,
        )  # fmt: skip
        with transaction.atomic():
            self.session.hold_token()
            Memo.objects.bulk_create([row], ignore_conflicts=True)
            orders.cancel(self.session, [run.pk for run in found if run.status in Run.LIVE])
        return results

    def _kept(self, digest: bytes) -> list[dict[str, Any] | None] | None:
        kept = Memo.objects.filter(
            run=self.session.run, base=self._base(), step=self.spec.name, name=NAME, digest=digest
        )
        return next((decode_canonical(bytes(result)) for result in kept.values_list("result", flat=True)), None)


def needed(need: str | int, of: int) -> int:
    """Return how many of so many children have to complete. Raises AgentError."""
    known = {"all": of, "first": min(1, of)}
    found = known.get(need) if isinstance(need, str) else need
    if not isinstance(found, int) or isinstance(found, bool) or not min(1, of) <= found <= of:
        raise AgentError(f"gather() takes need='all', need='first' or a number from 1 to {of}; it got {need!r}.")
    return found


def runs_of(parent: Run, asked: Gathering) -> list[Run]:
    """Return the runs in the order given. One that was told to stop counts as cancelled already. Raises AgentError.

    So does one of the run that `parent` was forked from unless it has completed: its end would not wake this one. A
    number that a step took from its state may be anybody's: only children of this lineage are read.
    """
    links = ChildLink.objects.filter(run__in=asked.runs)
    kin = Run.objects.of_lineage(parent.lineage).values("pk")
    rows = (links.filter(parent__in=kin) if parent.forked_from else links.filter(parent=parent)).select_related("run")
    found = {row.run_id: row for row in rows}
    if strange := [number for number in asked.runs if number not in found]:
        raise AgentError(f"gather() takes what spawn() returned; R-{strange[0]} is no child of this run.")
    for row in found.values():
        if row.run.status in Run.LIVE and (row.parent_id != parent.pk or row.ordered):
            row.run.status = Run.Status.CANCELLED
    return [found[number].run for number in asked.runs]


def needed_of(found: Sequence[Run], need: int) -> set[int]:
    """Return the runs whose results are given: the first `need` that completed, and those that were lost before."""
    done = sorted(
        (run for run in found if run.status == Run.Status.COMPLETED), key=lambda run: (run.finished_at or NEVER, run.pk)
    )
    lost = {run.pk for run in found if run.status in rules.LOST}
    return {run.pk for run in done[:need]} | lost


def result_of(run: Run) -> dict[str, Any]:
    """Return what became of a run, as it is kept."""
    state = store.load(run).state if run.head else {}
    return asdict(ChildResult(run.pk, str(run.status), state, run.reason))


def suspend(session: RunSession, spec: StepSpec, asked: Gathering) -> None:
    """Release the run until enough of its children have ended. Raises Fenced.

    They are counted under the run's row, which the end of a child locks too: one that has ended meanwhile is counted
    here, and one that ends later finds the run waiting. A wait is no failed attempt.
    """
    crash_points.point("before_gather", spec.name)
    with gates_beside.falling_asleep(session.run, session.asking), transaction.atomic():
        session.hold_token()
        missing = rules.gathered([run.status for run in runs_of(session.run, asked)], asked.need).missing
        session.wait(_words_of(asked) if missing else "", awaited=missing)
    crash_points.point("after_gather", spec.name)


def _words_of(asked: Gathering) -> str:
    """Say what the run waits for."""
    of = len(asked.runs)
    if asked.need == of:
        return f"Waits for {count_of(of, 'run')} that it started"
    return f"Waits for {asked.need} of {of} runs that it started"
