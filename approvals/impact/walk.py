"""Walks from where the run would go on, step by step, as long as the next step is known.

After a step of unknown output its fields and its next step are unknown. Where every way from it leads to one step and
none may stop on the way, the walk goes on there; else all steps that may follow get a row, and the walk is over.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from approvals.engine_rules import effects, gates
from approvals.engine_rules.steps import crosses_final
from checkpoints.runs.plans import StepSpec
from checkpoints.store.header import CheckpointHeader

from .facts import EffectFact, MoveTarget
from .flow import Flow
from .records import NOW, Records
from .result import ImpactRow, ImpactVerdict
from .values import NOTHING, PredictedState, StepInput, Steps


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

    @classmethod
    def begin(cls, records: Records, target: MoveTarget) -> Walk:
        """Begin a walk at the target, with rows for the path before it."""
        made = cls(records=records, flow=Flow(records.history.plan), target=target, state=PredictedState.at(target))
        for each in target.path:
            made._came_by(each)
        return made

    def _came_by(self, each: CheckpointHeader) -> None:
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

    def held(self) -> set[tuple[str, bytes, int]]:
        """Return the executions on the path, as far as their inputs are known."""
        return {(each.step, each.digest, each.occurrence) for each in self.path if each.digest is not None}

    def unsettled(self) -> list[EffectFact]:
        """List the effects that are known to be left behind, oldest first."""
        walked = {(each.step, each.digest, each.occurrence) for each in self.path[len(self.target.path) :]}
        return [row for row in self.records.own if self._left(row, walked)]

    def _left(self, row: EffectFact, walked: set[tuple[str, bytes | None, int]]) -> bool:
        if row.id in self.adopted or row.id in self.target.awaited:
            return False
        landed = (row.step, row.input_digest, row.occurrence) in walked
        return effects.left_behind(row, on_path=landed or self.records.carries(row))

    def foreign(self, step: str) -> list[EffectFact]:
        """List other runs' effects at a step; a person's answer about one execution does not cover the next."""
        landed = step in self.blurred or any(entry.step == step for entry in self.path[len(self.target.path) :])
        return [] if step in self.target.own and not landed else self.records.foreign(step)

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
        past = self.flow.gone_past(self.ahead)
        sure = [name for name in self.flow.steps if name not in past and self._surely_asks(self.flow.steps[name])]
        through = self.flow.reach(self.ahead, avoiding=sure)
        ways = {way for name in through for way in self.flow.ways[name]} | self.ahead
        found = through | {name for name in sure if name in ways}
        for name in self.in_order(found):
            spec = self.flow.steps[name]
            self._perhaps(spec, "flow", on, asks=spec.kind == "gate" or self._may_ask(spec))
            if spec.kind == "step":
                self._back_to(spec)
        return None

    def stop(self, gate: StepSpec) -> str | None:
        """Stop where a person is certainly asked at `gate`: what follows is another decision."""
        self.asks = gate.name
        self.ahead, self.ahead_on = frozenset(self.flow.plan.successors(gate.name)), frozenset({gate.name})
        self.state.blur(gates.told_at(gate), self.ahead_on)
        return None

    def due(self, about_to: StepSpec) -> list[EffectFact]:
        """List the effects left behind that are settled before this effect is performed, without their dependents."""
        return effects.due(self.unsettled(), self.flow.plan, about_to=about_to.name)

    def settle(self, about_to: StepSpec, on: Steps) -> None:
        """Mark effects that may be undone before `about_to` is performed: the dependents of those settled then."""
        for row in self.due(about_to):
            for each in effects.made_of(row, self.unsettled(), self.flow.plan):
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
            if at >= self.target.sent and each.step in wanted and not self._final_since(at, spec)
        }
        if places:
            self.losses.append((slice(min(places.values()), len(self.path)), frozenset({spec.name})))
        return set(places)

    def _final_since(self, at: int, judged: StepSpec) -> bool:
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

    def _surely_asks(self, spec: StepSpec) -> bool:
        return spec.kind == "gate" and spec.asks and not self.records.asked(spec.name)


def undoable(row: EffectFact) -> bool:
    """Tell whether the effect can be undone; never one that another run relies on."""
    return effects.undoable(row, undo=row.undo, shared=lambda: row.shared)
