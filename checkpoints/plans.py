"""A plan as data: what an agent version's steps read, write and may do.

Whoever reviews a run reads this and need not import the agent. A plan's row is found by its body's digest, so
the same declaration registered twice is one row.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from functools import lru_cache
from typing import Any, Self

from .models import Plan
from .values import canonical, decode


@dataclass(frozen=True, slots=True)
class StepSpec:
    """One step. `kind` is "step", "effect" or "gate"; `code_hash` is hex; `time_limit` is in seconds."""

    name: str
    kind: str = "step"
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    code_hash: str = ""
    doc: str = ""
    reads_world: bool = False
    undo: str = ""
    irreversible: bool = False
    idempotent: bool = False
    guarded: bool = False
    allows: tuple[str, ...] = ()
    edits: tuple[str, ...] = ()
    on_reject: str = ""
    on_expire: str = ""
    policy: str = ""
    feedback: str = ""
    time_limit: float | None = None
    retries: int = 0

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Read one step; names this version does not know are left out."""
        known = {f.name for f in fields(cls)}
        values: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in data.items() if k in known}
        return cls(**values)


@dataclass(frozen=True, slots=True)
class PlanSpec:
    """One agent version: its steps in order and the JSON Schema of its state."""

    agent: str
    version: str
    doc: str = ""
    state_schema: dict[str, Any] = field(default_factory=dict)
    steps: tuple[StepSpec, ...] = ()

    def step(self, name: str) -> StepSpec:
        """The step of that name. Raises KeyError."""
        for step in self.steps:
            if step.name == name:
                return step
        raise KeyError(name)

    def next_after(self, name: str) -> str:
        """The name of the step after `name` in the order of definition; empty after the last."""
        names = [step.name for step in self.steps]
        return (*names, "")[names.index(name) + 1]

    def to_json(self) -> dict[str, Any]:
        """The plan as plain data; tuples become lists when it is written."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """The reverse of `to_json`."""
        steps = tuple(StepSpec.from_json(step) for step in data.get("steps", ()))
        return cls(data["agent"], data["version"], data.get("doc", ""), dict(data.get("state_schema", {})), steps)


def keep(spec: PlanSpec) -> Plan:
    """The plan's row, made where it is new."""
    body = canonical(spec.to_json())
    plan, _ = Plan.objects.get_or_create(
        agent=spec.agent, version=spec.version, digest=hashlib.sha256(body).digest(), defaults={"body": body}
    )
    return plan


def spec_of(plan: Plan) -> PlanSpec:
    """The plan's body, read once a process."""
    return _read(bytes(plan.body))


@lru_cache(256)
def _read(body: bytes) -> PlanSpec:
    return PlanSpec.from_json(decode(body))
