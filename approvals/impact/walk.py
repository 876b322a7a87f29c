"""Walks from where the run would go on, step by step, as long as the next step is known.

After a step of unknown output its fields and its next step are unknown. Where every way from it leads to one step and
none may stop on the way, the walk goes on there; else all steps that may follow get a row, and the walk is over.

It also predicts what becomes of the effects that a choice leaves behind, up to the end of the run.

One that nothing ahead can adopt is undone, at the latest before the run ends. One that a step ahead may still adopt may
be undone. One that nothing takes back stays as it is. Decisions at later gates are not foreseen, except for edits that
do not send the run back.

It also finds where a run may go by its plan, without anybody's decision.

A step whose output is not known may go any of the ways that its plan gives it. Its continuation is certain all the same
where every one of those ways leads to the same step, and nothing on them could stop.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from django.utils.functional import cached_property

from approvals.engine_rules import effects, permissions
from approvals.engine_rules.effects import crosses_final
from approvals.engine_rules.permissions import allowing
from checkpoints.runs.plans import PlanSpec, StepSpec
from checkpoints.store.loading import CheckpointHeader

from .facts import EffectFact, MoveTarget
from .records import NOTHING, NOW, PredictedState, Records, StepInput, Steps, may_match
from .result import ImpactRow, ImpactVerdict

END = ""


@dataclass(frozen=True)
class Merge:
    """The step to which every way leads, and the steps that may run on the way there."""

    step: str
    between: frozenset[str]


class Flow:
    """A plan's ways from step to step. Unknown names lead nowhere."""

    def __init__(self, plan: PlanSpec) -> None:
        self.plan = plan
        self.steps = {step.name: step for step in plan.steps}  # in the order of definition

    @cached_property
    def ways(self) -> dict[str, frozenset[str]]:
        """Return step -> the steps where it may go, "" for the end.

        A step with validators may also go back to the steps that made what it reads, and an effect without a permission
        to a gate.
        """
        return {
            name: self.onward[name].union(allowing(self.plan, name) if step.guarded else ())
            for name, step in self.steps.items()
        }

    @cached_property
    def onward(self) -> dict[str, frozenset[str]]:
        """Return the ways without those of an effect back to a gate."""
        return {name: frozenset(self.plan.successors(name) | self.suspects(name)) for name in self.steps}

    def suspects(self, name: str) -> set[str]:
        """Return the steps to which a refused output of `name` may send the run back, without `name` itself."""
        step = self.steps[name]
        found: set[str] = set()
        reading = {name}
        for _ in range(step.rings if step.validators else 0):
            wanted = {field for each in reading for field in self.steps[each].reads}
            reading = {each.name for each in self.plan.steps if each.kind == "step" and wanted & set(each.writes)}
            found |= reading
        return found - {name}

    def reach(
        self, starts: Iterable[str], *, avoiding: Container[str] = (), ways: Mapping[str, frozenset[str]] | None = None
    ) -> set[str]:
        """Return the steps that may run from `starts` on, these included, on ways that avoid `avoiding`.

        `ways`: all, where not given.
        """
        ways = self.ways if ways is None else ways
        found: set[str] = set()
        left = [name for name in starts if name in self.steps]
        while left:
            at = left.pop()
            if at in found or at in avoiding:
                continue
            found.add(at)
            left += [name for name in ways[at] if name in self.steps]
        return found

    def ends(self, starts: Iterable[str], *, avoiding: str) -> bool:
        """Tell whether the run may end, from `starts` on, without going through `avoiding`."""
        names = set(starts)
        return END in names or any(END in self.ways[name] for name in self.reach(names, avoiding=[avoiding]))

    def merge(self, starts: frozenset[str]) -> Merge | None:
        """Find the first step to which every way from `starts` leads; None without one, or where a way may stop.

        It assumes that every loop ends. A step that asks a person, or may need a permission, may stop.
        """
        found = [
            Merge(name, frozenset(self.reach(starts, avoiding=[name])))
            for name in self.reach(starts)
            if not self.ends(starts, avoiding=name)
        ]
        nearest = min(found, key=lambda each: len(each.between), default=None)
        between = [self.steps[name] for name in nearest.between] if nearest else []
        may_stop = any(step.kind == "gate" or step.guarded or step.loop_guard for step in between)
        return None if may_stop else nearest


class WalkedExecution(NamedTuple):
    """One execution on the path, before the target or on the walk. `digest` is None where its input is not known."""

    step: str
    digest: bytes | None
    occurrence: int
    row: int  # its index in the rows; -1: none


class AdoptionChance(NamedTuple):
    """An input with which an effect left behind may be adopted, depending on the steps `on`."""

    reading: StepInput
    on: Steps


@dataclass
class Walk:
    """The state of the walk, with the rows so far.

    `ahead` is None while it goes on and where the run certainly ends; else the steps that may come next.
    """

    records: Records
    flow: Flow
    target: MoveTarget
    state: PredictedState
    rows: list[ImpactRow] = field(default_factory=list)
    path: list[WalkedExecution] = field(default_factory=list)
    counts: Counter[tuple[str, bytes | None]] = field(default_factory=Counter)
    blurred: set[str] = field(default_factory=set)  # steps with an execution of unknown input on the path
    adopted: set[int] = field(default_factory=set)
    shaky: dict[int, Steps] = field(default_factory=dict)  # effects that may be undone before they could be adopted
    chances: list[AdoptionChance] = field(default_factory=list)
    judged: set[str] = field(default_factory=set)  # steps whose output may be refused
    losses: list[tuple[slice, Steps]] = field(default_factory=list)  # (stretch of the path, steps that may go back)
    asks: str = ""
    ahead: frozenset[str] | None = None
    ahead_on: Steps = NOTHING

    def came_by(self, each: CheckpointHeader) -> None:
        """Add an execution before the target; the one that the decision saves gets a row unless it is the gate's."""
        spec = self.flow.steps.get(each.step)
        kind = "step" if spec is None else spec.kind
        key = (each.step, each.input_digest, each.occurrence)
        effect = (self.records.landed.get(each.id) or self.records.newest.get(key)) if kind == "effect" else None
        gone = effect is not None and effect.status in effects.GONE
        now = each.id == NOW
        self.path.append(WalkedExecution(each.step, each.input_digest, each.occurrence, len(self.rows)))
        self.counts[each.step, each.input_digest] += 1
        if now and kind == "gate":
            self.path[-1] = self.path[-1]._replace(row=-1)
            return
        row = ImpactRow(
            step=each.step, kind=kind, verdict=ImpactVerdict.UNDONE if gone else ImpactVerdict.STANDS,
            why="told" if now else "path", kept=not now, effect=effect.id if effect else 0,
            irreversible=bool(effect and effect.irreversible),
        )  # fmt: skip
        self.rows.append(row)

    @property
    def branched(self) -> bool:
        """Tell whether something was certainly executed off the path, without which no record is looked up."""
        if self.target.fork or not self.target.run:
            return True
        if self.target.branched is not None:
            return self.target.branched
        mine = {each.id for each in self.records.history.executions if each.run_id == self.target.run}
        return not mine <= {each.id for each in self.target.path}

    @property
    def unbranched(self) -> bool:
        """Tell whether certainly nothing is off the path, so that no record is looked up. A repair makes a branch."""
        return self.target.branched is False and not self.branched and not self.judged

    def occurrence(self, reading: StepInput) -> int | None:
        """Count how often the step was executed with this input before; None where unknown."""
        if reading.digest is None or reading.step in self.blurred:
            return None
        return self.counts[reading.step, reading.digest]

    @property
    def walked(self) -> list[WalkedExecution]:
        """Return the part of the path after the target."""
        return self.path[len(self.target.path) :]

    def unsettled(self, *, but_for: Iterable[WalkedExecution]) -> list[EffectFact]:
        """List the effects that are known to be left behind, oldest first, without those of these executions."""
        landed = {(each.step, each.digest, each.occurrence) for each in but_for}
        return [
            row
            for row in self.records.own
            if row.id not in self.adopted
            and row.id not in self.target.awaited
            and effects.left_behind(
                row,
                on_path=(row.step, row.input_digest, row.occurrence) in landed or self.records.carries(row),
            )
        ]

    def foreign(self, step: str) -> list[EffectFact]:
        """List other runs' effects at a step, certain or doubtful, about which a fork asks.

        A person's answer about one execution does not cover the next.
        """
        landed = step in self.blurred or any(entry.step == step for entry in self.walked)
        if not self.target.fork or (step in self.target.own and not landed):
            return []
        others = [row for row in self.records.effects if row.run != self.target.run and row.step == step]
        return [row for row in others if effects.asked_about(row)]

    def name(
        self, spec: StepSpec, verdict: ImpactVerdict, why: str, on: Steps = NOTHING, effect: EffectFact | None = None,
        asks: bool = False,
    ) -> None:  # fmt: skip
        """Add a row."""
        row = ImpactRow(
            step=spec.name, kind=spec.kind, verdict=verdict, on=self.in_order(on), why=why, asks=asks,
            effect=effect.id if effect else 0, irreversible=spec.irreversible,
            again=spec.kind == "effect" and why == "forced",
            origin=effect.run if effect and effect.run != self.target.run else 0,
            took=None if verdict is ImpactVerdict.STANDS or spec.kind == "gate" else self.records.took(spec.name),
        )  # fmt: skip
        self.rows.append(row)

    def _perhaps(self, spec: StepSpec, why: str, on: Steps, *, asks: bool = False) -> None:
        """Add a row for a step that may come, unless it has one already."""
        if not any(
            row.step == spec.name and row.verdict is ImpactVerdict.MAY and row.asks >= asks for row in self.rows
        ):
            self.name(spec, ImpactVerdict.MAY, why, on, asks=asks)

    def in_order(self, steps: Iterable[str]) -> tuple[str, ...]:
        """Return these steps in the order of the plan."""
        wanted = set(steps)
        return tuple(name for name in self.flow.steps if name in wanted)

    def landed(self, spec: StepSpec, reading: StepInput) -> None:
        """Add the step of the last row to the path, whether it ran or was reused."""
        at = self.counts[spec.name, reading.digest] if reading.digest is not None else 0
        self.path.append(WalkedExecution(spec.name, reading.digest, at, len(self.rows) - 1))
        if reading.digest is None:
            self.blurred.add(spec.name)
        else:
            self.counts[spec.name, reading.digest] += 1

    def gave(self, spec: StepSpec, on: Steps) -> str | None:
        """Go on after a step of unknown output; return the next step, None where that is unknown too."""
        back = self._back_to(spec)
        self._wrote([spec], on)
        starts = frozenset(self.flow.plan.successors(spec.name) | back)
        if len(starts) == 1:
            return next(iter(starts))
        met = self.flow.merge(starts)
        if met is None or any(self._may_ask(self.flow.steps[name]) for name in met.between):
            return self.over(starts, on)
        for name in self.in_order(met.between):
            self._perhaps(self.flow.steps[name], "repair" if name in back else "flow", on)
            self._back_to(self.flow.steps[name])
        self._wrote([self.flow.steps[name] for name in met.between], on)
        self.blurred |= met.between
        self._may_adopt(met.between, on)
        return met.step

    def over(self, starts: Iterable[str], on: Steps) -> str | None:
        """End the walk where nothing more is certain, with rows for all that may come up to gates that surely ask."""
        self.ahead, self.ahead_on = frozenset(starts), on
        flow = self.flow
        onward = flow.reach(self.ahead, ways=flow.onward) if flow.plan.goes_on_asking else ()
        past = {name for name in onward if not flow.steps[name].waits}  # gates that do not hold up the run
        sure = [
            name
            for name, spec in flow.steps.items()
            if spec.kind == "gate" and spec.asks and name not in past and not self.records.asked(name)
        ]
        through = flow.reach(self.ahead, avoiding=sure)
        ways = {way for name in through for way in flow.ways[name]} | self.ahead
        found = through | {name for name in sure if name in ways}
        for name in self.in_order(found):
            spec = flow.steps[name]
            self._perhaps(spec, "flow", on, asks=spec.kind == "gate" or self._may_ask(spec))
            if spec.kind == "step":
                self._back_to(spec)
        return None

    def stop(self, gate: StepSpec) -> str | None:
        """Stop where a person is certainly asked at `gate`: what follows is another decision."""
        self.asks = gate.name
        self.ahead, self.ahead_on = frozenset(self.flow.plan.successors(gate.name)), frozenset({gate.name})
        self.state.blur(permissions.told_at(gate), self.ahead_on)
        return None

    def due(self, about_to: StepSpec) -> list[EffectFact]:
        """List the effects left behind that are settled before this effect is performed, without their dependents."""
        return effects.due(self.unsettled(but_for=self.walked), self.flow.plan, about_to=about_to.name)

    def settle(self, about_to: StepSpec, on: Steps) -> None:
        """Mark effects that may be undone before `about_to` is performed: the dependents of those settled then."""
        for row in self.due(about_to):
            for each in effects.made_of(row, self.unsettled(but_for=self.walked), self.flow.plan):
                self.shaky[each.id] = self.shaky.get(each.id, NOTHING) | on

    def doubtful(self, about_to: StepSpec) -> Steps:
        """Return the steps with effects of unknown outcome that are looked up, or asked about, before this one."""
        due = self.due(about_to)
        return frozenset(row.step for row in due if effects.unclear(row))

    def _wrote(self, specs: Iterable[StepSpec], on: Steps) -> None:
        for spec in specs:
            words = [spec.feedback] if spec.feedback and (spec.validators or spec.catch) else []
            self.state.blur([*spec.writes, *words], on)

    def _back_to(self, spec: StepSpec) -> set[str]:
        """Return the steps on the path to which a repair of this step may go back, and mark what it may take back."""
        wanted = self.flow.suspects(spec.name)
        self.judged |= {spec.name} if wanted else set()
        places = {
            each.step: at
            for at, each in enumerate(self.path)
            if at >= self.target.sent and each.step in wanted and not self._crosses_final(at, spec)
        }
        if places:
            self.losses.append((slice(min(places.values()), len(self.path)), frozenset({spec.name})))
        return set(places)

    def _crosses_final(self, at: int, judged: StepSpec) -> bool:
        """Tell whether going back to this place of the path would certainly cross an irreversible step."""
        if any(stretch.stop > at for stretch, _ in self.losses):
            return False
        return crosses_final(self.flow.plan, [each.step for each in self.path[at:]], judged)

    def _may_ask(self, spec: StepSpec) -> bool:
        if spec.kind != "effect":
            return False
        in_doubt = any(effects.doubted(row) for row in self.records.generations(spec.name))
        return bool(self.foreign(spec.name)) or bool(self.doubtful(spec)) or in_doubt

    def _may_adopt(self, names: Iterable[str], on: Steps) -> None:
        for name in names:
            spec = self.flow.steps[name]
            if spec.kind == "effect":
                self.chances.append(AdoptionChance(self.state.reading(spec), on))
                self.settle(spec, on)


def undoable(row: EffectFact) -> bool:
    """Tell whether the effect can be undone; never one that another run relies on."""
    return effects.undoable(row, undo=row.undo, shared=lambda: row.shared)


def left(walk: Walk) -> list[ImpactRow]:
    """List a row for each effect that is off the path and not certainly adopted, newest first."""
    rows = [] if walk.target.leave else walk.unsettled(but_for=())
    ahead = _ahead(walk)
    return [_row(walk, row, ahead) for row in sorted(rows, key=lambda row: row.id, reverse=True)]


def questions(walk: Walk) -> list[ImpactRow]:
    """List a row for each effect step of unknown outcome that people may be asked about before the run ends."""
    if walk.asks or walk.target.leave:
        return []
    steps = walk.in_order(row.step for row in walk.unsettled(but_for=walk.walked) if effects.unclear(row))
    told = {row.step for row in walk.rows if row.asks}
    return [
        ImpactRow(step=name, kind="effect", verdict=ImpactVerdict.MAY, on=(name,), why="unsettled", asks=True)
        for name in steps
        if name not in told
    ]


def _row(walk: Walk, row: EffectFact, ahead: PredictedState | None) -> ImpactRow:
    may = effects.unclear(row)
    on: Steps = frozenset({row.step}) if may else NOTHING
    if not row.again:
        for chance in walk.chances:
            if chance.reading.step == row.step and may_match(row, chance.reading):
                may, on = True, on | chance.on
        if ahead is not None and _reachable(walk, row, ahead):
            may, on = True, on | walk.ahead_on
    verdict = ImpactVerdict.CANNOT if not undoable(row) else ImpactVerdict.MAY_UNDONE if may else ImpactVerdict.UNDONE
    return ImpactRow(
        step=row.step,
        kind="effect",
        verdict=verdict,
        on=walk.in_order(on),
        why="left",
        effect=row.id,
        irreversible=row.irreversible,
        again=row.again,
    )


def _ahead(walk: Walk) -> PredictedState | None:
    """Return the state after the walk, with fields that may still be written unknown; None if the run ends there."""
    if walk.ahead is None:
        return None
    after = PredictedState(dict(walk.state.fields), walk.state.config, walk.state.list_format)
    for name in walk.flow.reach(walk.ahead):
        spec = walk.flow.steps[name]
        words = [spec.feedback] if spec.feedback else []
        after.blur([*spec.writes, *words, *(permissions.told_at(spec) if spec.kind == "gate" else ())], walk.ahead_on)
    return after


def _reachable(walk: Walk, row: EffectFact, ahead: PredictedState) -> bool:
    """Tell whether a step after the walk may adopt the effect."""
    if row.step not in walk.flow.reach(walk.ahead or ()):
        return False
    reading = ahead.reading(walk.flow.steps[row.step])
    return may_match(row, reading) and row.occurrence >= walk.counts[row.step, row.input_digest]
