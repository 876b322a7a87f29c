"""A predicted state, of which not everything is known.

A field is known (its value and its digest), *novel* (not known, but unlike anything that was recorded, as a reviewer's
words with the time in them) or unknown, because it depends on the output of some steps. One that nobody wrote is
missing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from checkpoints.runs.plans import StepSpec, input_digest
from checkpoints.values.digests import ListDigest, of_field
from checkpoints.values.ops import DROP, Append, Splice, Write, apply_write

from .facts import ABSENT, Fields, MoveTarget

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
