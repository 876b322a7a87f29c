"""Reading a run's facts from the database, in a fixed number of queries, for agents.presentation."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

from django.contrib.auth.models import User
from django.db.models import Count, F, Q, Sum
from django.db.models.functions import Coalesce
from django.utils import timezone

from agents.history import Path
from agents.models import Failure
from agents.presentation.facts import Asked, Failed, Forked, Planned, Said, Saved, Standing, Story
from approvals.models import Decision, Gate, Outcome
from approvals.presentation import outcomes
from checkpoints import store
from checkpoints.models import Checkpoint, Event, Note, Plan, Run
from checkpoints.permissions import may
from checkpoints.plans import PlanSpec, spec_of
from checkpoints.values import decode

from .performed import effects_of, execution_of
from .removed import pruned_of

KIN = 8  # other runs of a lineage that the head names
WINDOW = 40  # checkpoints that one page of the timeline draws
FROZEN = "Integrity fault"  # how the runner begins the reason for which it froze a run
ORDERS = ("rewind", "edit", "fork")  # kinds of the checkpoints that a person ordered
ORDERED = ("run.rewound", "run.edited", "run.forked")  # their events


@dataclass(frozen=True, slots=True)
class Scene:
    """A run with its story: what every part of its page is drawn from."""

    run: Run
    plan: PlanSpec
    story: Story
    first_seq: int  # of the window
    lineage: Sequence[int]  # other runs, as far as the head names them
    may_move: bool  # the reader may rewind, edit, fork, cancel and settle the run

    @property
    def gate(self) -> Asked | None:
        """The gate that holds the run."""
        return next((gate for gate in reversed(self.story.gates) if gate.status == Gate.Status.OPEN), None)

    @property
    def first_left(self) -> bool:
        """Whether nothing older than the window is left of the run."""
        return any(gap.first == 1 and gap.last == self.first_seq - 1 for gap in self.story.pruned)

    def remaining(self) -> list[Planned]:
        """The steps that follow the one under way, in the plan's order."""
        names = [step.name for step in self.story.plan]
        if self.run.next_step not in names or self.run.status not in Run.LIVE:
            return []
        return list(self.story.plan[names.index(self.run.next_step) :])


def scene_of(run: Run, reader: User, *, before: int | None = None) -> Scene:
    """Gather what `reader` may know of `run`: the newest window of checkpoints, or the one below `before`."""
    plan = spec_of(run.plan)
    window = list(reversed(store.history(run, before_seq=before, limit=WINDOW)))
    path = Path.to(run.head) if run.head else Path([])
    lineage = lineage_of(run, reader)
    on_path = {place.id for place in path}
    story = Story(
        now=timezone.now(),
        run=standing(run),
        saved=tuple(saved_of(run, window)),
        path=frozenset(each.id.hex for each in window if each.id in on_path),
        plan=tuple(Planned(step.name, step.kind, step.irreversible, step.undo, step.guarded) for step in plan.steps),
        gates=tuple(gates_of(run, reader, window)),
        failures=tuple(failures_of(run, window)),
        effects=tuple(effects_of(run, plan, path)),
        forks=tuple(forks_of(run, window, reader)) if lineage else (),
        pruned=tuple(pruned_of(run, window)),
        newest=not window or window[-1].seq == run.seq,
    )
    may_move = may(reader, run.team_id, "checkpoints.rewind_run")
    return Scene(run, plan, story, window[0].seq if window else 0, lineage, may_move)


def standing(run: Run) -> Standing:
    """Where the run is now."""
    ended = Event.objects.none() if run.status in Run.LIVE else Event.objects.filter(run_id=run.pk)
    last = ended.filter(kind=f"run.{run.status}").order_by("-id").first()
    return Standing(
        status=run.status,
        head=run.head.hex if run.head else "",
        next_step=run.next_step,
        started_by=starter(run),
        attempts=run.attempts,
        wake_at=run.wake_at,
        reason=run.reason,
        changed_at=run.finished_at or (last.at if last else None),
        ended_by=ended_by(run, last),
        frozen=frozen_of(run),
        origin=origin_of(run),
        ending=run.ending,
        halting=run.halt and run.status == Run.Status.RUNNING,
    )


def ended_by(run: Run, last: Event | None) -> str:
    """Who ended the run; nobody where its agent did, or settled its effects first and then did as it was told."""
    by_person = last is not None and run.status not in Run.LIVE and not last.actor.startswith("agent:")
    return last.actor_name if last and by_person else ""


def origin_of(run: Run) -> str:
    """The run and the checkpoint that a fork began from; empty for any other run."""
    origin = Checkpoint.objects.filter(pk=run.forked_from).values("run_id", "seq").first() if run.forked_from else None
    return f"R-{origin['run_id']}, checkpoint {origin['seq']}" if origin else ""


def lineage_of(run: Run, reader: User) -> list[int]:
    """The other runs of the lineage that the reader may see, by number."""
    others = Run.objects.of_lineage(run.lineage or run.pk).visible_to(reader).exclude(pk=run.pk)
    return list(others.order_by("pk").values_list("pk", flat=True)[:KIN])


def frozen_of(run: Run) -> bool:
    """Whether the run ended because what is stored does not verify."""
    return run.status == Run.Status.FAILED and run.reason.startswith(FROZEN)


def starter(run: Run) -> str:
    """Who started the run, by the name that people know."""
    if run.started_by:
        return run.started_by.get_full_name() or run.started_by.get_username()
    return "Holdpoint" if run.started_as == "system" else run.started_as.partition(":")[2] or run.started_as


def saved_of(run: Run, window: Sequence[Checkpoint]) -> Iterable[Saved]:
    """The checkpoints of the window, with what their steps noted, or who ordered them and why."""
    words: dict[UUID, list[str]] = defaultdict(list)
    for note in Note.objects.filter(checkpoint__in=[each.id for each in window]).order_by("id"):
        words[note.checkpoint].append(bytes(note.text).decode(errors="replace"))
    twins, versions, origins = twins_of(run, window), versions_of(run, window), origins_of(run, window)
    by = orders_of(run) if any(each.kind in ORDERS for each in window) else {}
    for each in window:
        ordered = each.kind in ORDERS
        yield Saved(
            id=each.id.hex,
            seq=each.seq,
            parent=each.parent.hex if each.parent else "",
            kind=each.kind,
            step=each.step,
            at=each.at,
            took=timedelta(microseconds=each.took_us),
            attempt=each.attempt,
            words=() if ordered else tuple(words[each.id]),
            execution=execution_of(each),
            twin=twins.get(execution_of(each), "") if each.kind == "reused" else "",
            next_step=each.next_step,
            by=by.get(each.seq, "") if ordered else "",
            why=" ".join(words[each.id]) if ordered else "",
            origin=origins.get(each.parent, "") if each.parent else "",
            version=versions.get(each.plan_id, "") if each.kind == "upcast" else "",
            name=getattr(each, "named", ""),
        )


def origins_of(run: Run, window: Sequence[Checkpoint]) -> dict[UUID, str]:
    """The checkpoints of other runs on which those of the window stand; a run that is no fork has none."""
    if run.forked_from is None:
        return {}
    known = Checkpoint.objects.filter(pk__in={each.parent for each in window if each.parent}).exclude(run=run)
    return {each.pk: f"{each.seq} of R-{each.run_id}" for each in known.only("seq", "run_id")}


def twins_of(run: Run, window: Sequence[Checkpoint]) -> dict[str, str]:
    """What was executed -> where its output was first recorded, for the executions that the window reused."""
    wanted = {execution_of(each) for each in window if each.kind == "reused"} - {""}
    if not wanted:
        return {}
    steps = {each.step for each in window if each.kind == "reused"}
    kin = list(Run.objects.of_lineage(run.lineage or run.pk).values_list("pk", flat=True))
    known = Checkpoint.objects.filter(run__in=kin, step__in=steps, kind__in=("step", "gate"))
    columns = known.only("run_id", "seq", "step", "input_digest", "occurrence").order_by("at")
    places = ((execution_of(each), each) for each in columns)
    return {
        name: str(each.seq) if each.run_id == run.pk else f"{each.seq} of R-{each.run_id}"
        for name, each in places
        if name in wanted
    }


def orders_of(run: Run) -> dict[int, str]:
    """Who ordered a rewind, an edit or the fork that the run is, by the checkpoint's number."""
    found = Event.objects.filter(run_id=run.pk, kind__in=ORDERED).order_by("id")
    return {int(decode(bytes(each.data)).get("seq", 1)): each.actor_name for each in found}


def versions_of(run: Run, window: Sequence[Checkpoint]) -> dict[int, str]:
    """The agent's versions under which the window's checkpoints were saved, by plan; empty where there was but one."""
    plans = {each.plan_id for each in window}
    if plans <= {run.plan_id}:
        return {run.plan_id: run.plan.version}
    return dict(Plan.objects.filter(pk__in=plans).values_list("pk", "version"))


def states_of(window: Sequence[Checkpoint]) -> set[UUID]:
    """The states at which something may have happened that the window tells of: its own, and what it began from."""
    return {each.id for each in window} | {each.parent for each in window if each.parent}


def gates_of(run: Run, reader: User, window: Sequence[Checkpoint]) -> Iterable[Asked]:
    """The open gates and those of the window, oldest first, with what was said at each."""
    told = Gate.objects.filter(Q(status=Gate.Status.OPEN) | Q(checkpoint__in=states_of(window)), run=run)
    gates = list(told.select_related("policy", "outcome").prefetch_related("decisions__user").order_by("pk"))
    others = [gate.pk for gate in gates if gate.team_id != run.team_id]  # who sees a run sees the gates of its team
    visible = set(Gate.objects.visible_to(reader).filter(pk__in=others).values_list("pk", flat=True)) if others else ()
    for gate in gates:
        outcome = getattr(gate, "outcome", None)
        yield Asked(
            id=gate.pk,
            base=gate.checkpoint.hex,
            step=gate.step,
            kind=gate.kind,
            status=gate.status,
            title=gate.title,
            opened_at=gate.opened_at,
            closed_at=gate.closed_at,
            deadline=gate.deadline,
            quorum=gate.policy.quorum,
            outcome=outcome.kind if outcome else "",
            then=outcome.then if outcome else "",
            back_to=outcome.back_to if outcome else "",
            answer=(outcome.answered or {}).get("choice", "") if outcome else "",
            answer_label=outcomes.chosen(gate, outcome) if outcome and outcome.answered else "",
            actions=actions_of(outcome) if outcome and outcome.kind == Outcome.Kind.MIXED else (),
            said=tuple(said_of(gate.decisions.all())),
            visible=gate.team_id == run.team_id or gate.pk in visible,
        )


def actions_of(outcome: Outcome) -> tuple[str, ...]:
    """What became of each action. Its title is the agent's words, so its number and id stand for it."""
    return tuple(f"{each.word} {each.number} {each.id}" for each in outcomes.judged(outcome))


def said_of(decisions: Iterable[Decision]) -> Iterable[Said]:
    """What each reviewer said, in the order in which they said it."""
    for one in sorted(decisions, key=lambda decision: decision.pk):
        name = one.user.get_full_name() or one.user.get_username()
        yield Said(name, one.verdict, bytes(one.comment).decode(errors="replace"), one.counts)


def failures_of(run: Run, window: Sequence[Checkpoint]) -> Iterable[Failed]:
    """The attempts that did not land, oldest first, where the window tells of them."""
    here = Q(base__in=states_of(window)) | Q(seq__in=[each.seq for each in window])
    for each in Failure.objects.filter(here, run=run).order_by("pk"):
        told = bytes(each.traceback).decode(errors="replace")
        place = (each.validator, each.ring, each.seq, each.pk)
        yield Failed(each.base.hex, each.step, each.attempt, each.error, told, each.at, *place)


def forks_of(run: Run, window: Sequence[Checkpoint], reader: User) -> Iterable[Forked]:
    """The runs that started from a checkpoint of the window and that the reader may see."""
    forks = Run.objects.visible_to(reader).filter(forked_from__in=[each.id for each in window])
    for fork in forks.select_related("started_by").order_by("pk"):
        if fork.forked_from:
            own = fork.title if fork.title != run.title else ""
            yield Forked(fork.pk, fork.forked_from.hex, fork.status, fork.created_at, starter(fork), own)


def worked(run: Run) -> tuple[timedelta, int]:
    """The time that the run's steps took, on every branch, and how many of them did not have to run."""
    reused = Count("pk", filter=Q(kind=Checkpoint.Kind.REUSED))
    found = Checkpoint.objects.filter(run=run).aggregate(total=Sum("took_us"), reused=reused)
    return timedelta(microseconds=found["total"] or 0), found["reused"]


def held(scene: Scene) -> timedelta:
    """The time that the run stood at gates, open ones up to now."""
    if scene.story.newest and scene.first_seq <= 1:
        return sum(((gate.closed_at or scene.story.now) - gate.opened_at for gate in scene.story.gates), timedelta())
    stood = Coalesce(F("closed_at"), scene.story.now) - F("opened_at")
    return Gate.objects.filter(run=scene.run).aggregate(total=Sum(stood))["total"] or timedelta()
