"""Reading a run's facts from the database, in a fixed number of queries, for agents.presentation."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from django.contrib.auth.models import User
from django.db.models import Count, Q, Sum
from django.utils import timezone

from agents import unsettled
from agents.history import Path
from agents.models import Effect, Failure
from agents.presentation.facts import Asked, Done, Failed, Forked, Planned, Said, Saved, Standing, Story
from approvals.models import Decision, Gate
from approvals.presentation import outcomes
from checkpoints import store
from checkpoints.models import Checkpoint, Event, Note, Plan, Run
from checkpoints.plans import PlanSpec, spec_of
from checkpoints.values import decode

KIN = 8  # other runs of a lineage that the head names
WINDOW = 200  # checkpoints that one page of the timeline draws
FROZEN = "Integrity fault"  # how the runner begins the reason for which it froze a run
ORDERED = ("run.rewound", "run.edited", "run.forked")  # events of the checkpoints that a person ordered


@dataclass(frozen=True, slots=True)
class Scene:
    """A run with its story: what every part of its page is drawn from."""

    run: Run
    plan: PlanSpec
    story: Story
    first_seq: int  # of the window

    @property
    def gate(self) -> Asked | None:
        """The gate that holds the run."""
        return next((gate for gate in reversed(self.story.gates) if gate.status == Gate.Status.OPEN), None)

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
    on_path = set(store.path(run))
    story = Story(
        now=timezone.now(),
        run=standing(run),
        saved=tuple(saved_of(run, window)),
        path=frozenset(each.id.hex for each in window if each.seq in on_path),
        plan=tuple(Planned(step.name, step.kind, step.irreversible, step.undo, step.guarded) for step in plan.steps),
        gates=tuple(gates_of(run, reader)),
        failures=tuple(failures_of(run)),
        effects=tuple(effects_of(run, plan)),
        forks=tuple(forks_of(run, window, reader)),
        newest=not window or window[-1].seq == run.seq,
    )
    return Scene(run, plan, story, window[0].seq if window else 0)


def standing(run: Run) -> Standing:
    """Where the run is now."""
    last = Event.objects.filter(run_id=run.pk, kind=f"run.{run.status}").order_by("-id").first()
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
    others = Run.objects.visible_to(reader).filter(kin_of(run)).exclude(pk=run.pk)
    return list(others.order_by("pk").values_list("pk", flat=True)[:KIN])


def kin_of(run: Run) -> Q:
    """The runs of the lineage: the root by its key, and the forks, which have an index of their own."""
    root = run.lineage or run.pk
    return Q(pk=root) | Q(lineage=root, forked_from__isnull=False)


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
    twins, by, versions = twins_of(run, window), orders_of(run), versions_of(run, window)
    for each in window:
        ordered = each.kind in ("rewind", "edit", "fork")
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
            version=versions.get(each.plan_id, "") if each.kind == "upcast" else "",
        )


def execution_of(row: Checkpoint | Effect) -> str:
    """What was executed: step, input and occurrence. Empty for a checkpoint that is no execution."""
    return "" if row.input_digest is None else f"{row.step}/{bytes(row.input_digest).hex()}/{row.occurrence}"


def twins_of(run: Run, window: Sequence[Checkpoint]) -> dict[str, str]:
    """What was executed -> where its output was first recorded, for the executions that the window reused."""
    wanted = {execution_of(each) for each in window if each.kind == "reused"} - {""}
    if not wanted:
        return {}
    steps = {each.step for each in window if each.kind == "reused"}
    kin = list(Run.objects.filter(kin_of(run)).values_list("pk", flat=True))
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


def gates_of(run: Run, reader: User) -> Iterable[Asked]:
    """The run's gates, oldest first, with what was said at each."""
    visible = set(Gate.objects.visible_to(reader).filter(run=run).values_list("pk", flat=True))
    gates = Gate.objects.filter(run=run).select_related("policy", "outcome").order_by("pk")
    for gate in gates.prefetch_related("decisions__user"):
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
            said=tuple(said_of(gate.decisions.all())),
            visible=gate.pk in visible,
        )


def said_of(decisions: Iterable[Decision]) -> Iterable[Said]:
    """What each reviewer said, in the order in which they said it."""
    for one in sorted(decisions, key=lambda decision: decision.pk):
        name = one.user.get_full_name() or one.user.get_username()
        yield Said(name, one.verdict, bytes(one.comment).decode(errors="replace"), one.counts)


def failures_of(run: Run) -> Iterable[Failed]:
    """The attempts that did not land, oldest first."""
    for each in Failure.objects.filter(run=run).order_by("pk"):
        told = bytes(each.traceback).decode(errors="replace")
        place = (each.validator, each.ring, each.seq, each.pk)
        yield Failed(each.base.hex, each.step, each.attempt, each.error, told, each.at, *place)


def effects_of(run: Run, plan: PlanSpec) -> Iterable[Done]:
    """The run's rows of the effect ledger, undos among them, in the order in which they were intended."""
    return done_of(run, plan, list(Effect.objects.filter(run=run).select_related("taken_from").order_by("pk")))


def done_of(run: Run, plan: PlanSpec, rows: Sequence[Effect]) -> Iterable[Done]:
    """Rows of the ledger as facts; those that are off the path to the head of `run` are known as such."""
    undo = {step.name: step.undo for step in plan.steps}
    path = Path.to(run.head) if run.head and any(row.status in unsettled.OPEN for row in rows) else None
    for each in rows:
        yield Done(
            step=each.step,
            base=each.base.hex,
            key=each.key,
            status=each.status,
            irreversible=each.irreversible,
            undo=undo.get(each.step, ""),
            error=each.error,
            at=each.settled_at or each.intended_at,
            id=each.pk,
            execution=execution_of(each),
            generation=each.generation,
            undoes=each.undoes_id or 0,
            unsettled=bool(path) and off_path(each, path),
            again=each.again,
            taken_from=f"R-{each.taken_from.run_id}" if each.taken_from else "",
        )


def off_path(row: Effect, path: Path | None) -> bool:
    """Whether the run has left the effect behind, and nothing has settled it yet."""
    known = path is not None and row.undoes_id is None and row.status in unsettled.OPEN
    return known and path is not None and unsettled.abandoned(row, path)


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


def held(gates: Iterable[Asked], now: datetime) -> timedelta:
    """The time that the run stood at gates, open ones up to now."""
    return sum(((gate.closed_at or now) - gate.opened_at for gate in gates), timedelta())
