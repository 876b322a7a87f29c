"""Reads a run's facts from the database, in a fixed number of queries, for agents.presentation."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from django.contrib.auth.models import User
from django.contrib.postgres.expressions import ArraySubquery
from django.db.models import F, OuterRef, Q, QuerySet

from agents.compatibility.preflight import program_of
from agents.models import Failure, StepCheckpoint, Wait
from agents.presentation.timeline.facts import Story, TimelineFork, TimelineGate
from agents.runs import activity
from approvals.audit.event_words import ROUTINE
from approvals.models import Gate
from checkpoints.models import Checkpoint, Event, Note, Run
from checkpoints.postgresql.prepared_rows import OneOf, prepared_statement
from checkpoints.runs import notes
from checkpoints.runs.plans import spec_of

from .performed_effects import done_of, rows_of
from .run_gates import gates_of
from .run_row import RunRow
from .saved_checkpoints import ORDERED, ORDERS, pruned_of, saved_of, states_of

WINDOW = 40  # checkpoints that one page of the timeline draws
NEWEST = 2**31 - 1  # no checkpoint of a run has a larger number
MOST_ORDERS = 500  # events of orders that are searched for those of the window


@dataclass(frozen=True, slots=True)
class RunScene:
    """A run with its story, from which every part of its page is drawn."""

    read: RunRow
    story: Story
    window: Sequence[Checkpoint]
    known: Sequence[Checkpoint]  # the window, and the checkpoints looked at
    events: Sequence[Event]  # the newest events for the page, newest first

    @property
    def run(self) -> Run:
        return self.read.run

    @property
    def first_seq(self) -> int:
        """Return the number of the window's first checkpoint; 0 for an empty one."""
        return self.window[0].seq if self.window else 0

    @property
    def gate(self) -> TimelineGate | None:
        """Return the newest gate that holds the run."""
        return next(reversed(self.story.holding), None)

    @property
    def first_left(self) -> bool:
        """Tell whether retention removed everything older than the window."""
        return any(gap.first == 1 and gap.last == self.first_seq - 1 for gap in self.story.pruned)


def scene_of(read: RunRow, reader: User, *, before: int | None = None, looked_at: Collection[int] = ()) -> RunScene:
    """Gather the facts of a run that `reader` may see: the newest window of checkpoints, or the one below `before`.

    `looked_at` are the numbers of other checkpoints that the page shows.
    """
    run, plan = read.run, spec_of(read.run.plan)
    known = headers_of(run, before, looked_at)
    window = window_of(run, before, known)
    events = events_of(run, window, {run.head} | {checkpoint.id for checkpoint in known if checkpoint.seq in looked_at})
    on_path = read.course.on_path([checkpoint.seq for checkpoint in window])
    end = (
        None if run.status in Run.LIVE else next((event for event in events if event.kind == f"run.{run.status}"), None)
    )
    gates = tuple(gates_of(run, reader, window))
    head = run.head.hex if run.head else ""
    held = any(gate.status == Gate.Status.OPEN and gate.base == head for gate in gates)
    story = Story(
        now=read.now,
        run=run,
        head=head,
        saved=tuple(saved_of(read, window, events)),
        path=frozenset(checkpoint.id.hex for checkpoint in window if checkpoint.seq in on_path),
        plan=plan.steps,
        gates=gates,
        failures=tuple(failures_of(run, window)) if read.failed else (),
        effects=tuple(done_of(plan, rows_of([run.pk]), read.course)),
        forks=tuple(forks_of(read, window)),
        pruned=tuple(pruned_of(run, window)) if read.pruned else (),
        newest=not window or window[-1].seq == run.seq,
        started_by=starter_name(run),
        changed_at=run.finished_at or (end.at if end else None),
        # Empty if its agent ended it, also after it had settled its effects on a person's order.
        ended_by=end.actor_name if end and not end.actor.startswith("agent:") else "",
        origin=read.origin,
        wait=None if held else Wait.objects.current(run),
        step_checkpoints=() if held or run.status not in Run.LIVE else tuple(StepCheckpoint.objects.under_way(run)),
        program=program_of(run) if run.plan.external and run.status in Run.LIVE else None,
    )
    return RunScene(read, story, window, known, [event for event in events if event.kind not in ROUTINE])


def headers_of(run: Run, before: int | None, looked_at: Collection[int]) -> list[Checkpoint]:
    """Return the window, the checkpoints `looked_at`, and their parents; newest first, with the notes of the steps."""
    headers = _headers(run.pk, list(looked_at), NEWEST if before is None else before)
    for header in headers:
        if header.plan_id == run.plan_id:  # as nearly all have; the plan is read only once
            header.plan = run.plan
    return headers


@prepared_statement
def _headers(run: Any, looked_at: Any, before: Any) -> QuerySet[Checkpoint]:
    notes = Note.objects.filter(checkpoint=OuterRef("pk")).order_by("pk").values("text")
    own = Checkpoint.objects.filter(run=run, seq__lt=before).order_by("-seq")
    here = Checkpoint.objects.filter(OneOf(F("seq"), looked_at), run=run)
    asked = own.values("pk")[:WINDOW].union(here.values("pk"), here.values("parent"), all=True)
    found = Checkpoint.objects.filter(pk__in=asked).with_names().with_noted().defer("payload")
    return found.annotate(said=ArraySubquery(notes)).order_by("-run", "-seq")


def window_of(run: Run, before: int | None, known: Iterable[Checkpoint]) -> list[Checkpoint]:
    """Return the checkpoints that one page draws, oldest first."""
    own = [
        checkpoint
        for checkpoint in known
        if checkpoint.run_id == run.pk and (before is None or checkpoint.seq < before)
    ]
    return own[:WINDOW][::-1]


def events_of(run: Run, window: Sequence[Checkpoint], noted: Collection[UUID | None] = ()) -> list[Event]:
    """Read the newest events for the page, the run's end, and the orders behind the window's checkpoints.

    Also people's notes on the checkpoints `noted`. One statement.
    """
    ended = "" if run.status in Run.LIVE else f"run.{run.status}"
    about = [notes.subject_of(uuid) for uuid in noted if uuid]
    return _events(run.pk, about, ended=ended, ordered=any(checkpoint.kind in ORDERS for checkpoint in window))


@prepared_statement
def _events(run: Any, about: Any, *, ended: str, ordered: bool) -> QuerySet[Event]:
    own = Event.objects.filter(run_id=run).exclude(kind="checkpoint.saved").order_by("-id")
    asked = Q(pk__in=own.exclude(kind__in=ROUTINE).values("pk")[: activity.PAGE + 1])
    if ended:
        asked |= Q(pk__in=own.filter(kind=ended).values("pk")[:1])
    if ordered:
        asked |= Q(pk__in=own.filter(kind__in=ORDERED).values("pk")[:MOST_ORDERS])
    noted = Event.objects.sealable().filter(OneOf(F("subject"), about), kind__in=notes.KINDS)
    return own.filter(asked | Q(pk__in=noted.values("pk"))).select_related("words")


def starter_name(run: Run) -> str:
    """Return the name of whoever started the run, as people know it."""
    if run.started_by:
        return run.started_by.get_full_name() or run.started_by.get_username()
    return "Holdpoint" if run.started_as == "system" else run.started_as.partition(":")[2] or run.started_as


def failures_of(run: Run, window: Sequence[Checkpoint]) -> Iterable[Failure]:
    """Return the failed attempts for the window's rows, oldest first."""
    here = Q(base__in=states_of(window)) | Q(seq__in=[checkpoint.seq for checkpoint in window])
    return Failure.objects.filter(here, run=run).order_by("pk")


def forks_of(read: RunRow, window: Sequence[Checkpoint]) -> Iterable[TimelineFork]:
    """Yield the visible runs that started from a checkpoint of the window."""
    here = {checkpoint.id.hex for checkpoint in window}
    for kin in read.kin:
        if kin.origin in here:
            yield kin if kin.title != read.run.title else replace(kin, title="")
