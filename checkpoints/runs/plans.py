"""Plans as data: an agent version's steps with what they read, write and may do.

Pages of a run read the plan and do not import the agent. A plan's row is found by its body's digest, so the same
declaration registered twice is one row.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from threading import RLock
from typing import Any, Self

from cachetools import LRUCache, cached
from django.db import transaction
from django.db.models import QuerySet
from django.utils.functional import cached_property

from checkpoints.models import Plan
from checkpoints.models.run import name_plan
from checkpoints.postgresql.prepared_rows import prepared_statement
from checkpoints.postgresql.sql import run_sql
from checkpoints.values import digests
from checkpoints.values.canonical_json import decode_canonical, encode_canonical

READ = 4_000_000  # bytes of plans that a process caches; the decoded values take some ten times as much
STEP = 500  # bytes counted for one step
_LEFT_OUT = (("then", ""), ("holds", ()), ("milestone", False), ("waits", True))  # a step's defaults
_IN_TURN = "SELECT pg_advisory_xact_lock(hashtextextended('new plans', 0))"


@dataclass(frozen=True, slots=True)
class StepSpec:
    """One step. `kind` is "step", "effect" or "gate"; `code_hash` is hex; `timeout` and `backoff` are in seconds.

    `jumps` and `ends` say where it may go instead of to the step after it, which the runner enforces: they tell what
    can run next without running anything.
    """

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
    on_skip: str = ""  # the step after a gate that has nothing to ask
    policy: str = ""
    feedback: str = ""
    timeout: float | None = None
    retry: int = 0
    backoff: float = 1.0  # before the second attempt; doubles
    catch: str = ""  # the step to continue with when all attempts failed
    loop_guard: int = 0  # executions on one path, after which a person is asked; 0: no limit
    jumps: tuple[str, ...] = ()
    ends: bool = False
    config: tuple[str, ...] = ()  # names of the configuration that it uses
    readable: str = ""  # the method that asks the provider, by key, for the effect's outcome
    asks: bool = False  # a gate that always has something to ask
    observes: tuple[str, ...] = ()  # a gate's observations of the world, which may become preconditions
    validators: tuple[str, ...] = ()
    rings: int = 0  # how many levels of producers a repair of a refused output goes back
    tries: int = 1  # repairs in each ring
    action: str = ""  # of an effect: the field that holds the id of the action that it performs next
    responds: str = ""  # of an effect: the field for a person's answer instead
    then: str = ""  # the step after it, if that is not the next in order
    holds: tuple[str, ...] = ()  # what it leaves open for later steps, and the environment variables that matter to it
    milestone: bool = False  # saved at once where the agent saves at milestones
    waits: bool = True  # a gate at which the run waits; else it goes on with what does not depend on the decision
    title: str = ""  # its title for people; without one, its name in words

    def __post_init__(self) -> None:
        if not self.title:
            object.__setattr__(self, "title", in_words(self.name))

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Read one step; names that this version does not know are ignored."""
        known = {f.name for f in fields(cls)}
        values: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in data.items() if k in known}
        return cls(**values)


@dataclass(frozen=True)
class PlanSpec:
    """One agent version: its steps in order and the JSON Schema of its state."""

    agent: str
    version: str
    doc: str = ""
    state_schema: dict[str, Any] = field(default_factory=dict)
    steps: tuple[StepSpec, ...] = ()
    signals: dict[str, Any] = field(default_factory=dict)  # name -> the JSON Schema of its value
    external: bool = field(default=False, compare=False)  # from its row, not from its body

    @cached_property
    def body(self) -> bytes:
        """Return the canonical JSON of its row."""
        return encode_canonical(self.to_json())

    @cached_property
    def digest(self) -> bytes:
        """Return the digest that identifies its row where the agent is here."""
        return hashlib.sha256(self.untitled().body).digest()

    @property
    def named(self) -> str:
        """Name the agent and its version, as people read it."""
        return name_plan(self.agent, self.version)

    def step(self, name: str) -> StepSpec:
        """Return the step of that name. Raises KeyError."""
        for step in self.steps:
            if step.name == name:
                return step
        raise KeyError(name)

    def title_of(self, name: str) -> str:
        """Return a step's title for pages; if the plan has no such step, one made from its name."""
        return self.titles.get(name) or (name if self.external else in_words(name))

    @cached_property
    def goes_on_asking(self) -> bool:
        """Tell whether a run may go on while a gate of its is open."""
        return any(not step.waits for step in self.steps)

    @property
    def titles(self) -> dict[str, str]:
        """Return the steps' titles for pages, by name."""
        return {step.name: step.title for step in self.steps}

    def untitled(self) -> Self:
        """Return the same plan with default titles, so that plans that differ only in titles are equal."""
        return replace(self, steps=tuple(replace(step, title="") for step in self.steps))

    def next_after(self, name: str) -> str:
        """Return the step after `name`: its `then`, else the next in order; "" after the last."""
        if then := self.step(name).then:
            return then
        names = [step.name for step in self.steps]
        return (*names, "")[names.index(name) + 1]

    def passed(self, name: str) -> str:
        """Return the step after a gate that has nothing to ask."""
        return self.step(name).on_skip or self.next_after(name)

    def successors(self, name: str) -> set[str]:
        """Return the steps that may follow `name` without a person's order; "" for the end."""
        step = self.step(name)
        elsewhere = filter(None, [step.catch, step.on_expire, step.on_skip])
        return {self.next_after(name), *step.jumps, *elsewhere, *[""] * step.ends}

    def reachable(self, name: str) -> set[str]:
        """Return the steps that may still run when `name` is next, itself included; empty for the end."""
        found: set[str] = set()
        left = {name} - {""}
        while left:
            at = left.pop()
            found.add(at)
            left |= self.successors(at) - found - {""}
        return found

    def repeats(self, name: str) -> bool:
        """Tell whether `name` may run again after it has run, without a person's order."""
        return any(name in self.reachable(after) for after in self.successors(name))

    def dependents(self, name: str) -> set[str]:
        """Return the steps that read what `name` writes, and what those write, and so on; without `name` itself."""
        found: set[str] = set()
        left = [name]
        while left:
            written = set(self.step(left.pop()).writes)
            new = [step.name for step in self.steps if written & set(step.reads) and step.name not in found]
            found |= set(new)
            left += new
        return found - {name}

    def sources(self, fields: Iterable[str], steps: Collection[str]) -> set[str]:
        """Return these fields and, transitively, all fields from which these steps may compute them."""
        found = set(fields)
        while (
            new := {
                name for step in self.steps if step.name in steps and found & set(step.writes) for name in step.reads
            }
            - found
        ):
            found |= new
        return found

    def redone(self, executed: Sequence[str], fields: Iterable[str] = ()) -> list[str]:
        """Return those of the `executed` steps, in order, whose input may change if the first of them runs again.

        `fields` are further fields that change. Gates are left out: they ask again if what they show has changed.
        """
        known = {step.name: step for step in self.steps}
        changed, found = set(fields), []
        for at, name in enumerate(executed):
            step = known.get(name)
            if step is None or step.kind == "gate":
                continue
            if at == 0 or step.reads_world or changed & set(step.reads):
                changed |= set(step.writes)
                found.append(name)
        return found

    def to_json(self) -> dict[str, Any]:
        """Return the plan as plain data; tuples become lists when it is written.

        `then`, `holds`, `milestone`, `waits`, `title` and `signals` are left out if they have their defaults.
        """
        steps = [{name: getattr(step, name) for name in StepSpec.__slots__} for step in self.steps]
        for step in steps:
            for name, none in (*_LEFT_OUT, ("title", in_words(step["name"]))):
                if step[name] == none:
                    del step[name]
        body = {name: getattr(self, name) for name in ("agent", "version", "doc", "state_schema")}
        return {**body, **({"signals": self.signals} if self.signals else {}), "steps": steps}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Reverse `to_json`."""
        steps = tuple(StepSpec.from_json(step) for step in data.get("steps", ()))
        schema, signals = (dict(data.get(name, {})) for name in ("state_schema", "signals"))
        return cls(data["agent"], data["version"], data.get("doc", ""), schema, steps, signals)


def input_digest(step: StepSpec, fields: Mapping[str, bytes], config: Mapping[str, Any] | None = None) -> bytes:
    """Compute H(step, {read field: its digest}); a field that was never written has none.

    If the step uses configuration, the digest of the values that it names is included ("*": of all values).
    """
    read = {name: bytes(fields[name]).hex() for name in step.reads if name in fields}
    parts: list[Any] = ["step input", step.name, read]
    if step.config:
        known = dict(config or {})
        used = known if "*" in step.config else {name: known[name] for name in step.config if name in known}
        parts.append(digests.of_value(used).hex())
    return digests.of_value(parts)


def keep(spec: PlanSpec, *, external: bool = False) -> Plan:
    """Return the plan's row; make it if it is new. `external`: the agent's code is elsewhere.

    Plans that differ only in titles are one row, with the newest titles. Not so for an external agent, whose rows
    teams share: nobody may change the titles of another team's steps.
    """
    body = spec.body
    digest = hashlib.sha256(body).digest() if external else spec.digest
    known = {"agent": spec.agent, "version": spec.version, "digest": digest, "external": external}
    found = _stored_plans(*known.values())
    plan = found[0] if found else _insert_plan(known, body)
    if bytes(plan.body) != body:
        Plan.objects.filter(pk=plan.pk).update(body=body)
        plan.body = body
    return plan


def _insert_plan(known: Mapping[str, Any], body: bytes) -> Plan:
    """Insert a plan unless another process has. One process at a time: two that insert several would deadlock."""
    with transaction.atomic():
        run_sql(_IN_TURN, [])
        return Plan.objects.get_or_create(**known, defaults={"body": body})[0]


@prepared_statement
def _stored_plans(agent: Any, version: Any, digest: Any, external: Any) -> QuerySet[Plan]:
    return Plan.objects.filter(agent=agent, version=version, digest=digest, external=external)


def in_words(name: str) -> str:
    """Turn a step's name into words: "ask_facts" is "Ask facts"."""
    words = " ".join(re.findall(r"[^\s_.:-]+", name)) or name
    return words[:1].upper() + words[1:]


def spec_of(plan: Plan) -> PlanSpec:
    """Return the plan's body, cached in the process.

    An external agent's titles are whatever its program sent, so its steps are titled by their names.
    """
    return _read(bytes(plan.body), plan.external)


@cached(LRUCache(READ, lambda spec: len(spec.steps) * STEP + len(encode_canonical(spec.state_schema))), lock=RLock())
def _read(body: bytes, external: bool) -> PlanSpec:
    spec = PlanSpec.from_json(decode_canonical(body))
    steps = tuple(replace(step, title=step.name) for step in spec.steps) if external else spec.steps
    return replace(spec, steps=steps, external=external)
