"""Reads a run's facts from the database, in a fixed number of queries, for its page."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.contrib.auth.models import User
from django.contrib.postgres.expressions import ArraySubquery
from django.db import connection
from django.db.models import F, Func, OuterRef, Q, QuerySet, Subquery, TextField, Value
from django.db.models.functions import JSONObject

from agents.compatibility.preflight import program_of
from agents.effects.ledger import done_of, execution_of, rows_of
from agents.models import Failure, StepCheckpoint, Wait
from agents.pages.run.facts import Story, TimelineCheckpoint, TimelineDecision, TimelineFork, TimelineGap, TimelineGate
from agents.pages.run.row import RunRow
from agents.runs import activity
from agents.runs.query import starter_name
from approvals.audit.event_words import ROUTINE
from approvals.models import Decision, Gate, Outcome, Proposal
from approvals.policy.requirements import Requirements
from approvals.presentation.gate_facts import outcomes
from checkpoints.models import Checkpoint, Event, Gap, Note, Plan, Run
from checkpoints.postgresql.prepared_rows import OneOf, prepared_statement
from checkpoints.runs import notes
from checkpoints.runs.plans import spec_of
from checkpoints.values.canonical_json import decode_canonical

WINDOW = 40  # checkpoints that one page of the timeline draws
NEWEST = 2**31 - 1  # no checkpoint of a run has a larger number
MOST_ORDERS = 500  # events of orders that are searched for those of the window
# Each decision at a gate, in the order in which they were made; a comment may hold what JSON text cannot.
COMMENT = Func(F("comment"), Value("base64"), function="encode", output_field=TextField())
DECISION = JSONObject(
    first="user__first_name", last="user__last_name", username="user__username", verdict="verdict", counts="counts",
    comment=COMMENT,
)  # fmt: skip
SAID = Decision.objects.filter(gate=OuterRef("pk")).order_by("pk").values(one=DECISION)
# What the current proposal needs by the policy's rules; empty: what the policy asks of all.
NEEDS = Subquery(Proposal.objects.filter(gate=OuterRef("pk"), number=OuterRef("proposal")).values("requirements")[:1])
ORDERS = ("rewind", "edit", "fork")  # kinds of the checkpoints that a person ordered
ORDERED = ("run.rewound", "run.edited", "run.forked")  # their events
TWIN_RUNS = 20  # of a lineage in which twins are looked for: the run itself, the first, and the newest
TWINS = 500  # checkpoints of each, the newest
_TWINS = """
SELECT c.run_id, c.seq, c.step, c.input_digest, c.occurrence FROM (
  SELECT id FROM checkpoints_run WHERE id = %(root)s OR (lineage = %(root)s AND forked_from IS NOT NULL)
  ORDER BY (id = %(run)s) DESC, (id = %(root)s) DESC, id DESC LIMIT %(runs)s) r
CROSS JOIN LATERAL (
  SELECT run_id, seq, at, kind, step, input_digest, occurrence FROM checkpoints_checkpoint
  WHERE run_id = r.id AND seq < CASE WHEN r.id = %(run)s THEN %(below)s ELSE 2147483647 END
  ORDER BY seq DESC LIMIT %(most)s) c
WHERE c.kind IN ('step', 'gate') AND c.step = ANY(%(steps)s) AND c.input_digest = ANY(%(inputs)s)
ORDER BY c.at, c.run_id, c.seq
"""


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
    end = next((event for event in events if event.kind == f"run.{run.status}"), None)
    end = None if run.status in Run.LIVE else end
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
    own = [row for row in known if row.run_id == run.pk and (before is None or row.seq < before)]
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


def gates_of(run: Run, reader: User, window: Sequence[Checkpoint]) -> Iterable[TimelineGate]:
    """Return the open gates and those of the window, oldest first, with the decisions at each."""
    gates = _gates(run.pk, list(states_of(window)))
    others = [gate.pk for gate in gates if gate.team_id != run.team_id]  # its own team's are visible with the run
    visible = set(Gate.objects.visible_to(reader).filter(pk__in=others).values_list("pk", flat=True)) if others else ()
    for gate in gates:
        outcome = getattr(gate, "outcome", None)
        judged = outcomes.judged(outcome) if outcome and outcome.kind == Outcome.Kind.MIXED else ()
        yield TimelineGate(
            id=gate.pk,
            base=gate.checkpoint.hex,
            step=gate.step,
            kind=gate.kind,
            status=gate.status,
            opened_at=gate.opened_at,
            closed_at=gate.closed_at,
            deadline=gate.deadline,
            quorum=Requirements.from_text(gate.needs).slots if gate.needs else gate.policy.quorum,
            outcome=outcome.kind if outcome else "",
            then=outcome.then if outcome else "",
            back_to=outcome.back_to if outcome else "",
            answer=(outcome.answered or {}).get("choice", "") if outcome else "",
            answer_label=gate.asked.label_of(outcome.answered) if outcome and outcome.answered else "",
            # Each by its number and tool, or id: its title is the agent's words.
            actions=tuple(f"{item.word} {item.number} {item.action.tool or item.action.id}" for item in judged),
            decisions=tuple(map(said_of, getattr(gate, "words", ()))),
            visible=gate.team_id == run.team_id or gate.pk in visible,
        )


@prepared_statement
def _gates(run: Any, checkpoints: Any) -> QuerySet[Any]:
    here = OneOf(F("checkpoint"), checkpoints)
    gates = Gate.objects.filter(Q(status=Gate.Status.OPEN) | Q(here), run=run)
    return gates.select_related("policy", "outcome").annotate(words=ArraySubquery(SAID), needs=NEEDS).order_by("pk")


def said_of(row: Mapping[str, Any]) -> TimelineDecision:
    """Return one reviewer's decision, from a row of SAID."""
    name = f"{row['first']} {row['last']}".strip() or row["username"]
    return TimelineDecision(name, row["verdict"], b64decode(row["comment"]).decode(errors="replace"), row["counts"])


def saved_of(read: RunRow, window: Sequence[Checkpoint], events: Sequence[Event]) -> Iterable[TimelineCheckpoint]:
    """Yield the checkpoints of the window, with the notes of their steps, or who ordered them and why."""
    run = read.run
    orders = [event for event in events if event.kind in ORDERED]
    by = {int(decode_canonical(bytes(event.data)).get("seq", 1)): event.actor_name for event in orders}
    twins, versions = twins_of(run, window), versions_of(run, window)
    turns = [turn for turn in read.course.turns if turn.run not in (0, run.pk)]
    origins = {turn.seq: _place(turn.parent, turn.run) for turn in turns}  # parents in another run
    for checkpoint in window:
        execution = execution_of(checkpoint.step, checkpoint.input_digest, checkpoint.occurrence)
        ordered = checkpoint.kind in ORDERS
        words = tuple(bytes(text).decode(errors="replace") for text in getattr(checkpoint, "said", ()))
        yield TimelineCheckpoint(
            id=checkpoint.id.hex,
            seq=checkpoint.seq,
            parent=checkpoint.parent.hex if checkpoint.parent else "",
            kind=checkpoint.kind,
            step=checkpoint.step,
            at=checkpoint.at,
            took=timedelta(microseconds=checkpoint.took_us),
            attempt=checkpoint.attempt,
            words=() if ordered else words,
            execution=execution,
            twin=twins.get(execution, "") if checkpoint.kind == "reused" else "",
            next_step=checkpoint.next_step,
            by=by.get(checkpoint.seq, "") if ordered else "",
            why=" ".join(words) if ordered else "",
            origin=origins.get(checkpoint.seq, ""),
            version=versions.get(checkpoint.plan_id, "") if checkpoint.kind == "upcast" else "",
            name=getattr(checkpoint, "named", ""),
            noted=getattr(checkpoint, "noted", 0),
        )


def _place(number: int, run: int) -> str:
    return f"{number} of R-{run}"


def twins_of(run: Run, window: Sequence[Checkpoint]) -> dict[str, str]:
    """Map the executions that the window reused to the place where the output was recorded.

    Only the newest checkpoints of some runs of the lineage are searched; a place further off is left out,
    and the note of the checkpoint that reused it names it.
    """
    reused = [row for row in window if row.kind == "reused" and row.input_digest is not None]
    if not reused:
        return {}
    asked: dict[str, Any] = {
        "run": run.pk, "root": run.lineage, "below": window[-1].seq, "runs": TWIN_RUNS, "most": TWINS,
        "steps": [checkpoint.step for checkpoint in reused],
        "inputs": [bytes(checkpoint.input_digest or b"") for checkpoint in reused],
    }  # fmt: skip
    with connection.cursor() as cursor:
        cursor.execute(_TWINS, asked)
        found = cursor.fetchall()
    wanted = {execution_of(checkpoint.step, checkpoint.input_digest, checkpoint.occurrence) for checkpoint in reused}
    places = (
        (execution_of(step, digest, occurrence), str(seq) if of == run.pk else _place(seq, of))
        for of, seq, step, digest, occurrence in found
    )
    return {name: place for name, place in places if name in wanted}


def versions_of(run: Run, window: Sequence[Checkpoint]) -> dict[int, str]:
    """Return the agent versions that saved the window's checkpoints, by plan."""
    plans = {checkpoint.plan_id for checkpoint in window}
    if plans <= {run.plan_id}:
        return {run.plan_id: run.plan.version}
    return dict(Plan.objects.filter(pk__in=plans).values_list("pk", "version"))


def states_of(window: Sequence[Checkpoint]) -> set[UUID]:
    """Return the ids at which failures and gates of the window can be: its checkpoints and their parents."""
    return {checkpoint.id for checkpoint in window} | {checkpoint.parent for checkpoint in window if checkpoint.parent}


def pruned_of(run: Run, window: Sequence[Checkpoint]) -> list[TimelineGap]:
    """List the checkpoints that retention removed before and between the window's, adjacent gaps joined."""
    upto = window[-1].seq if window else run.seq + 1
    gaps = list(Gap.objects.filter(run=run, first_seq__lt=upto).defer("headers").order_by("first_seq"))
    if not gaps:
        return []
    older = Checkpoint.objects.filter(run=run, seq__lt=window[0].seq if window else upto).order_by("-seq")
    since = older.values_list("seq", flat=True).first() or 0
    found: list[TimelineGap] = []
    for gap in gaps:
        if gap.last_seq <= since:
            continue
        if not found or gap.first_seq != found[-1].last + 1:
            found.append(TimelineGap(gap.first_seq, gap.last_seq, gap.at, gap.at, []))
        joined = found[-1]
        joined.last, joined.upto = gap.last_seq, gap.at
        joined.policies += [] if gap.policy in joined.policies else [gap.policy]
    return found
