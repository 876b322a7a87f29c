"""Looks up records the way the engine does: what can be reused or adopted, and what stands.

Also here: a predicted state, of which not everything is known.

A field is known (its value and its digest), *novel* (not known, but unlike anything that was recorded, as a reviewer's
words with the time in them) or unknown, because it depends on the output of some steps. One that nobody wrote is
missing.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, NamedTuple
from uuid import UUID

from approvals.engine_rules import effects
from checkpoints.runs.plans import StepSpec, input_digest
from checkpoints.store.loading import CheckpointHeader
from checkpoints.values.checkpoint_kinds import OUTPUT_LANDED
from checkpoints.values.digests import ListDigest, of_field
from checkpoints.values.ops import DROP, Append, Splice, Write, apply_write

from .facts import ABSENT, OPEN, EffectFact, Fields, GateFact, MoveTarget, RecordedHistory

Steps = frozenset[str]
NOTHING: Steps = frozenset()


class KnownValue(NamedTuple):
    """A field of known value."""

    value: Any
    digest: bytes


class NovelValue(NamedTuple):
    """A field whose value differs from every recorded one."""


class UnknownValue(NamedTuple):
    """A field whose value depends on the output of these steps."""

    on: Steps


Field = KnownValue | NovelValue | UnknownValue
NOVEL = NovelValue()


@dataclass(frozen=True)
class StepInput:
    """The input that a step would read. `digest` is that of the whole input, None where not all of it is known."""

    step: str
    known: Fields
    absent: Steps  # fields that nobody has written
    novel: bool
    on: Steps  # the steps on which the unknown fields depend; may be empty
    digest: bytes | None

    def matches(self, read: Fields) -> bool:
        """Tell whether a recorded input with these digests by field may be this one."""
        if self.novel or any(name in read for name in self.absent):
            return False
        return all(read.get(name) == digest for name, digest in self.known.items())


@dataclass
class PredictedState:
    """The predicted fields by name; configuration and format of digests, which do not change during the walk."""

    fields: dict[str, Field]
    config: Mapping[str, Any]
    list_format: type[ListDigest]

    @classmethod
    def at(cls, target: MoveTarget) -> PredictedState:
        """Build the state from the target's saved one, overridden by its novel and unknown fields.

        Raises ValueError for one without a state.
        """
        if target.list_format is None:
            raise ValueError("a target without a state has no impact")
        made: dict[str, Field] = {
            name: KnownValue(target.state.get(name), digest) for name, digest in target.fields.items()
        }
        made |= {name: UnknownValue(on) for name, on in target.unknown.items()}
        made |= dict.fromkeys(target.novel, NOVEL)
        return cls(made, target.config, target.list_format)

    def digest(self, name: str) -> bytes | None:
        """Return the digest of a known field, an empty one for a missing field, None for any other."""
        found = self.fields.get(name)
        if found is None:
            return ABSENT
        return found.digest if isinstance(found, KnownValue) else None

    def reading(self, step: StepSpec) -> StepInput:
        """Return what `step` would read now."""
        read = {name: self.fields[name] for name in step.reads if name in self.fields}
        known = {name: found.digest for name, found in read.items() if isinstance(found, KnownValue)}
        unknown = [found.on for found in read.values() if isinstance(found, UnknownValue)]
        novel = any(isinstance(found, NovelValue) for found in read.values())
        whole = not novel and not unknown
        return StepInput(
            step=step.name,
            known=known,
            absent=frozenset(step.reads) - read.keys(),
            novel=novel,
            on=NOTHING.union(*unknown),
            digest=input_digest(step, known, self.config) if whole else None,
        )

    def write(self, writes: Mapping[str, Write]) -> None:
        """Apply recorded writes. Raises ValueRefused, with nothing changed, where one does not fit its field."""
        made = {name: self._after(name, write) for name, write in writes.items()}
        for name, found in made.items():
            if found is None:
                self.fields.pop(name, None)
            else:
                self.fields[name] = found

    def blur(self, names: Iterable[str], on: Steps) -> None:
        """Mark these fields as unknown, dependent on the output of the steps `on`."""
        for name in names:
            found = self.fields.get(name)
            self.fields[name] = UnknownValue(on | found.on if isinstance(found, UnknownValue) else on)

    def _after(self, name: str, write: Write) -> Field | None:
        before = self.fields.get(name)
        if write is DROP:
            return None
        if not isinstance(write, (Append, Splice)):
            return KnownValue(write, of_field(write, self.list_format))
        if isinstance(before, UnknownValue):
            return before
        if isinstance(before, NovelValue):
            return before if isinstance(write, Append) else UnknownValue(NOTHING)
        old = None if before is None else before.value
        value = apply_write(old, write)
        if isinstance(write, Append) and before is not None and isinstance(before.digest, ListDigest):
            return KnownValue(value, before.digest.appended(write.items))
        return KnownValue(value, of_field(value, self.list_format))


NOW = UUID(int=0)  # the id of the execution that the decision itself will save

Key = tuple[str, bytes | None, int]  # step, input digest, occurrence


class Records:
    """A history, with the statuses that the previewed decision gives."""

    def __init__(self, history: RecordedHistory, target: MoveTarget) -> None:
        self.history, self.target = history, target
        self._executions: dict[str, list[CheckpointHeader]] = defaultdict(list)
        for each in history.executions:
            self._executions[each.step].append(each)
        self._on_path = {each.id for each in target.path if each.kind in OUTPUT_LANDED}
        self._take([self._taken_up(self._as_decided(row)) for row in history.effects])
        self.gates = [self._decided(gate) for gate in history.gates if gate.run == target.run and target.run]
        self.ended_at = {gate.execution for gate in history.gates if gate.execution}

    def _take(self, rows: list[EffectFact]) -> None:
        self.effects = rows
        self.own = [row for row in rows if row.run == self.target.run and self.target.run]
        # This run's effects: by the executions that carry their results, and by their own key in the latest generation.
        self.landed = {landing: row for row in self.own for landing in row.landings}
        ordered = sorted(self.own, key=lambda row: row.generation)
        self.newest: dict[Key, EffectFact] = {(row.step, row.input_digest, row.occurrence): row for row in ordered}

    def order_again(self, row: EffectFact) -> None:
        """Mark an effect to which a person sends the run back: it is done once more, and not adopted."""
        self._take([replace(each, again=True) if each.id == row.id else each for each in self.effects])

    def _as_decided(self, row: EffectFact) -> EffectFact:
        if row.id not in self.target.settled:
            return row
        status = self.target.settled[row.id]
        left_open = effects.left_open(status, known=row.status not in effects.IN_DOUBT)
        landings = row.landings | {NOW} if status == "done" else row.landings
        return replace(row, status=status, going=False, left_open=left_open, landings=landings)

    def _taken_up(self, row: EffectFact) -> EffectFact:
        """Return the effect as after a person moves the run: done where the path carries it, and not ordered again."""
        if not self.target.takes_up or row.run != self.target.run:
            return row
        stands = effects.taken_up(row, on_path=self.carries(row))
        return replace(row, status="done" if stands else row.status, again=False)

    def carries(self, row: EffectFact) -> bool:
        """Tell whether the path to the target carries the effect's result."""
        return not row.landings.isdisjoint(self._on_path)

    def _decided(self, gate: GateFact) -> GateFact:
        if gate.id != self.target.deciding:
            return gate
        asked = next((step for step in self.history.plan.steps if step.name == gate.step), None)
        code = bytes.fromhex(asked.code_hash) if asked and gate.current else gate.code_hash
        given, refused = self.target.grants, self.target.refused
        return replace(gate, kind=self.target.decision, grants=given, refused=refused, execution=NOW, code_hash=code)

    def why(self, step: StepSpec) -> str:
        """Return why a step runs and is not reused: "new" if it never ran in this lineage, else "input"."""
        return "input" if self._executions[step.name] else "new"

    def took(self, step: str) -> timedelta | None:
        """Return how long the step's last execution took; None where there is none."""
        ran = [each.took_us for each in self._executions[step] if each.kind == "step"]
        return timedelta(microseconds=ran[-1]) if ran else None

    def every(self, step: StepSpec) -> list[CheckpointHeader]:
        """List all executions of a step with this very code."""
        code = bytes.fromhex(step.code_hash)
        return [each for each in self._executions[step.name] if each.code_hash == code]

    def passes(self, step: StepSpec) -> list[CheckpointHeader]:
        """List the executions of a gate with this very code that had nothing to ask."""
        return [each for each in self.every(step) if each.kind == "gate" and each.id not in self.ended_at]

    def asked(self, step: str) -> list[GateFact]:
        """List this run's closed gates of a step, newest first, without recovery gates."""
        found = [gate for gate in self.gates if gate.step == step and not gate.recovery]
        return [gate for gate in reversed(found) if gate.kind != OPEN]

    def generations(self, step: str) -> list[EffectFact]:
        """List this run's effects of a step, each in its latest generation."""
        return [row for row in self.newest.values() if row.step == step]


def may_match(record: CheckpointHeader | EffectFact | GateFact, reading: StepInput) -> bool:
    """Tell whether a record's input may be this one."""
    if reading.novel:
        return False
    if reading.digest is not None:
        return record.input_digest == reading.digest
    return isinstance(record, CheckpointHeader) or (read := record.reads()) is None or reading.matches(read)


def matching(
    records: Iterable[CheckpointHeader], reading: StepInput, counts: Counter[tuple[str, bytes | None]]
) -> list[CheckpointHeader]:
    """List the records that may match this input, given how often each input occurred on the path."""
    found = [each for each in records if each.occurrence >= counts[each.step, each.input_digest]]
    return [each for each in found if may_match(each, reading)]
