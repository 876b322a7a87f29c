"""A plan as data: what an agent version's steps read, write and may do.

Whoever reviews a run reads this and need not import the agent. A plan's row is found by its body's digest, so
the same declaration registered twice is one row.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from threading import RLock
from typing import Any, Self

from cachetools import LRUCache, cached
from django.db.models import OuterRef, QuerySet, Subquery

from checkpoints.models import Plan, Run
from checkpoints.models.plan import named
from checkpoints.values import digests
from checkpoints.values.canonical_json import canonical, decode

READ = 4_000_000  # bytes of plans that a process keeps read; their values take some ten times as much
STEP = 500  # of one step


@dataclass(frozen=True, slots=True)
class StepSpec:
    """One step. `kind` is "step", "effect" or "gate"; `code_hash` is hex; `timeout` and `backoff` are in seconds.

    `jumps` and `ends` are where else it may go than to the step after it, which the runner enforces: from them a
    reader knows what can run next without running anything.
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
    on_skip: str = ""  # where a gate goes on that has nothing to ask
    policy: str = ""
    feedback: str = ""
    timeout: float | None = None
    retry: int = 0
    backoff: float = 1.0  # before the second attempt; doubles
    catch: str = ""  # the step to go on with when the attempts have run out
    loop_guard: int = 0  # executions on one path, after which a person is asked; 0: no limit
    jumps: tuple[str, ...] = ()
    ends: bool = False
    config: tuple[str, ...] = ()  # names of the configuration that it uses
    readable: str = ""  # the method that asks the provider, by key, what became of the effect
    asks: bool = False  # a gate that always has something to ask
    observes: tuple[str, ...] = ()  # a gate's observations of the world, which may become preconditions
    validators: tuple[str, ...] = ()
    rings: int = 0  # how far back a refused output is taken to the producers of its inputs
    tries: int = 1  # in each ring
    action: str = ""  # an effect's: the field that holds the id of the action that it performs next
    responds: str = ""  # an effect's: the field that a person's answer in its place is written to
    then: str = ""  # the step that comes after it, where that is not the next in order
    title: str = ""  # what people call it; without one, its name in words

    def __post_init__(self) -> None:
        if not self.title:
            object.__setattr__(self, "title", in_words(self.name))

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
    external: bool = field(default=False, compare=False)  # as its row says; no part of its body

    @property
    def named(self) -> str:
        """Name the agent and its version, as people read it."""
        return named(self.agent, self.version)

    def step(self, name: str) -> StepSpec:
        """Return the step of that name. Raises KeyError."""
        for step in self.steps:
            if step.name == name:
                return step
        raise KeyError(name)

    def title_of(self, name: str) -> str:
        """Return the title of the step of that name, as pages show it, whether or not the plan has it."""
        return self.titles.get(name) or (name if self.external else in_words(name))

    @property
    def titles(self) -> dict[str, str]:
        """Return the title of each step, as pages show it, by the step's name."""
        return {step.name: step.title for step in self.steps}

    def untitled(self) -> Self:
        """Return the same plan without titles of its own: what the steps do, whatever people call them."""
        return replace(self, steps=tuple(replace(step, title="") for step in self.steps))

    def next_after(self, name: str) -> str:
        """Return the name of the step after `name`: the one that it names, else the next; "" after the last."""
        if then := self.step(name).then:
            return then
        names = [step.name for step in self.steps]
        return (*names, "")[names.index(name) + 1]

    def passed(self, name: str) -> str:
        """Return the step at which the run goes on after a gate that has nothing to ask."""
        return self.step(name).on_skip or self.next_after(name)

    def successors(self, name: str) -> set[str]:
        """Return the steps at which the run may go on after `name` without a person's order; "" for the end."""
        step = self.step(name)
        elsewhere = filter(None, [step.catch, step.on_expire, step.on_skip])
        return {self.next_after(name), *step.jumps, *elsewhere, *[""] * step.ends}

    def reachable(self, name: str) -> set[str]:
        """Return the steps that may still run once the run is before `name`, itself included; empty for the end."""
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
        """Return these fields, and all that some of these steps may make them of, and so on."""
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
        """Return those of the steps executed in this order whose input may change once the first of them runs again.

        `fields` are others that change with that. A gate asks people where what it shows is another, and is left out.
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

        `then` and `title` are left out where a step says none.
        """
        steps = [asdict(step) for step in self.steps]
        for step in steps:
            for name, none in (("then", ""), ("title", in_words(step["name"]))):
                if step[name] == none:
                    del step[name]
        body = asdict(replace(self, steps=()))
        del body["external"]
        return {**body, "steps": steps}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Reverse `to_json`."""
        steps = tuple(StepSpec.from_json(step) for step in data.get("steps", ()))
        return cls(data["agent"], data["version"], data.get("doc", ""), dict(data.get("state_schema", {})), steps)


def input_digest(step: StepSpec, fields: Mapping[str, bytes], config: Mapping[str, Any] | None = None) -> bytes:
    """Compute H(step, {read field: its digest}); a field that nobody wrote has none.

    Where the step uses configuration, the digest of the values that it names is part of it ("*": of all of it).
    """
    read = {name: bytes(fields[name]).hex() for name in step.reads if name in fields}
    parts: list[Any] = ["step input", step.name, read]
    if step.config:
        known = dict(config or {})
        used = known if "*" in step.config else {name: known[name] for name in step.config if name in known}
        parts.append(digests.of_value(used).hex())
    return digests.of_value(parts)


def of_teams(teams: Collection[int]) -> QuerySet[Plan]:
    """Return the plans that these teams have runs of.

    One run of each plan is looked for along an index, whose order is asked for: as a join, or without it, the planner
    would read every run of the teams.
    """
    runs = Run.objects.filter(plan=OuterRef("pk"), team__in=list(teams))
    some = runs.order_by("plan", "team", "-pk").values("pk")[:1]
    return Plan.objects.alias(some=Subquery(some)).filter(some__isnull=False)


def keep(spec: PlanSpec, *, external: bool = False) -> Plan:
    """Return the plan's row, made where it is new. `external`: the agent's code is elsewhere.

    Other titles are the same plan, whose row has the newest. Of an agent elsewhere they are another plan: its rows are
    shared by teams, and nobody may give another team's steps other titles.
    """
    body = canonical(spec.to_json())
    plan, _ = Plan.objects.get_or_create(
        agent=spec.agent,
        version=spec.version,
        digest=digest_of(spec, external=external),
        external=external,
        defaults={"body": body},
    )
    if bytes(plan.body) != body:
        Plan.objects.filter(pk=plan.pk).update(body=body)
        plan.body = body
    return plan


def digest_of(spec: PlanSpec, *, external: bool = False) -> bytes:
    """Compute the digest by which the plan's row is found."""
    return hashlib.sha256(canonical((spec if external else spec.untitled()).to_json())).digest()


def in_words(name: str) -> str:
    """Write a step's name as people read it: "ask_facts" is "Ask facts"."""
    words = " ".join(re.findall(r"[^\s_.:-]+", name)) or name
    return words[:1].upper() + words[1:]


def spec_of(plan: Plan) -> PlanSpec:
    """Return the plan's body, read once a process.

    Where the code is elsewhere a title is whatever a program sent, so a step is called by its name there.
    """
    return _read(bytes(plan.body), plan.external)


@cached(LRUCache(READ, lambda spec: len(spec.steps) * STEP + len(canonical(spec.state_schema))), lock=RLock())
def _read(body: bytes, external: bool) -> PlanSpec:
    spec = PlanSpec.from_json(decode(body))
    steps = tuple(replace(step, title=step.name) for step in spec.steps) if external else spec.steps
    return replace(spec, steps=steps, external=external)
