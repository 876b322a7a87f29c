"""The registry of agents in this process: from HOLDPOINT_AGENTS and from the entry points `holdpoint.agents`.

Declarations are read once a process. `plans` also stores each plan's row, once; a worker claims runs of these plans.
An agent that cannot be served is left out and reported in a sentence (`faults`, `changed`); the others are served.

It also detects changes of an agent's code while runs of the same version are under way.

A run follows the plan that it was started with. When the code of that version has changed, no worker may continue the
run: the new code might do something that nobody approved. The version is therefore not served until the old code is
back, the class has another version, or the runs have ended. While an agent is being written (HOLDPOINT_DEVELOPMENT),
the changed code is served all the same, and the runs that began with other code wait.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

from django.conf import settings
from django.db.models import QuerySet

from agents.errors import UnknownAgent
from checkpoints.errors import PlanChanged
from checkpoints.models import Plan, Run
from checkpoints.postgresql.prepared_rows import prepared_statement
from checkpoints.runs import plans as stored_plans
from checkpoints.runs.plans import PlanSpec

from . import environment, modules, upcast
from .agent import Agent
from .plan_builder import plan_of
from .registered import RegisteredAgent, queue_of
from .upcast import UpcastPath, version_key

NAMED = 5  # runs by number
CANCELLED = 100  # runs that one command names


def under_way(spec: PlanSpec, *, among: QuerySet[Run] | None = None) -> list[int]:
    """List the live runs of this version, of `among` if given, that were planned with other code, the oldest first."""
    asked = (spec.agent, spec.version, spec.digest)
    found = _under_way(*asked) if among is None else _of_other_code(*asked, among=among)
    return [run.pk for run in found]


def _of_other_code(agent: Any, version: Any, digest: Any, *, among: QuerySet[Run] | None = None) -> QuerySet[Run]:
    runs = (Run.objects.all() if among is None else among).filter(status__in=Run.LIVE, plan__external=False)
    same = runs.filter(plan__agent=agent, plan__version=version).exclude(plan__digest=digest)
    return same.order_by("pk").only("pk")


@prepared_statement
def _under_way(agent: Any, version: Any, digest: Any) -> QuerySet[Run]:
    return _of_other_code(agent, version, digest)


def sentence(spec: PlanSpec, runs: Sequence[int]) -> str:
    """Say which runs wait, what is not served, and what can be done about it."""
    numbers, more = runs[:NAMED], ", …" if len(runs) > NAMED else ""
    named = ", ".join(f"R-{pk}" for pk in numbers) + more
    if len(runs) > 1:
        waits, them, it, those = f"{len(runs)} of its runs are", "those runs wait for the code they", "them", "the runs"
    else:
        waits, them, it, those = "1 of its runs is", "that run waits for the code it", "it", "the run"
    rest = "new runs start with the changed code" if settings.HOLDPOINT_DEVELOPMENT else "no other is started"
    return (
        f"The code of {spec.agent} {spec.version} changed while {waits} under way ({named}); {them} began with, and "
        f"{rest}. Put that code back, or give the class another version (with an "
        f'@upcast("{spec.version}") it takes {it} over), or cancel {those}: '
        f".venv/bin/python manage.py cancel {' '.join(map(str, runs[:CANCELLED]))}"
    )


@dataclass(frozen=True)
class DeclaredAgents:
    """The agent versions that can be used, by (name, version), and a sentence for each module or class that cannot."""

    agents: dict[tuple[str, str], RegisteredAgent]
    faults: tuple[str, ...] = ()


_reading = threading.RLock()
_only: DeclaredAgents | None = None
_known: DeclaredAgents | None = None
_served: frozenset[str] = frozenset()  # the queues that this worker serves; empty: all


def declared() -> DeclaredAgents:
    """Return the agents set by `know_only`, else those that the modules declare."""
    return _only or _known or _read()


def _read() -> DeclaredAgents:
    """Read the modules once, in the first thread that asks; the others wait.

    A web process's first requests come at once, and before Python 3.11.8 `ast.parse` may fail where two threads
    parse at once (python/cpython#106905): an agent would be left out.
    """
    global _known
    with _reading:
        known = _known = _known or of_classes(*modules.read())
    return known


def of_classes(classes: Iterable[type[Agent]], faults: Iterable[str] = ()) -> DeclaredAgents:
    """Return these classes with their plans.

    Of two with one name and version neither is used: they would take each other's runs.
    """
    found: dict[tuple[str, str], RegisteredAgent] = {}
    wrong, twice = list(faults), set()
    for agent in dict.fromkeys(classes):
        where = (agent.name, agent.version)
        try:
            known = RegisteredAgent(agent, plan_of(agent))
            environment.check(agent, known.spec)
            upcast.check(agent, known.spec)
        except Exception as error:  # noqa: BLE001 - a State may raise anything while its schema is made
            wrong.append(f"{agent.__module__}.{agent.__name__} cannot be used: {modules.describe_error(error)}.")
            continue
        if where in found:
            twice.add(where)
            wrong.append(
                f"{agent.__module__}.{agent.__name__} and {found[where].agent.__module__}."
                f"{found[where].agent.__name__} are both {agent.name} {agent.version}, so neither is used; "
                "raise one's version."
            )
        found.setdefault(where, known)
    return DeclaredAgents({where: known for where, known in found.items() if where not in twice}, tuple(wrong))


def agents() -> dict[tuple[str, str], RegisteredAgent]:
    """Return every agent version that can be used here, by (name, version)."""
    return declared().agents


def names() -> set[str]:
    """Return the names of the agents that can be used here, in whatever version."""
    return {name for name, _ in agents()}


def faults() -> list[str]:
    """Return a sentence for each module and class that cannot be used here, which says what to do."""
    return list(declared().faults)


def changed() -> list[str]:
    """Return a sentence, with what to do, for each version whose code changed while runs of it are under way."""
    waiting = [(agent.spec, under_way(agent.spec)) for agent in agents().values()]
    return [sentence(spec, runs) for spec, runs in waiting if runs]


def agent_named(name: str, version: str = "") -> RegisteredAgent:
    """Return the agent of that name, in its newest version unless one is given. Raises UnknownAgent."""
    versions = [key for key in agents() if key[0] == name and version in ("", key[1])]
    if not versions:
        known = ", ".join(sorted({key[0] for key in agents()})) or "none"
        unread = "".join(f" {fault}" for fault in faults())
        way = unread or " Name the module that declares it in HOLDPOINT_AGENTS, or in `make run AGENTS=…`."
        raise UnknownAgent(f"There is no agent named {name}{f' {version}' if version else ''}; known: {known}.{way}")
    return agents()[max(versions, key=lambda key: version_key(key[1]))]


def way_of(plan: Plan | PlanSpec) -> UpcastPath | None:
    """Return the upcast path to a registered version for runs of a plan whose version is not; None if there is none."""
    return upcast.way(plan, agents())


def queue_for(plan: Plan | PlanSpec) -> str:
    """Return the queue of the version that takes this plan's runs; "" for an external agent."""
    if plan.external:
        return ""
    way = way_of(plan)
    return way.to.queue if way else queue_of(plan.agent, plan.version)


def upcasting_agents() -> set[str]:
    """Return the names of the agents with upcasters, so that another version may take over their runs."""
    return {name for (name, _), agent in agents().items() if upcast.upcasters_of(agent.agent)}


def queues() -> list[str]:
    """List Celery's queues that a worker serves here: each agent version has its own."""
    return sorted(agent.queue for agent in agents().values() if _is_served(agent))


def serve_only(names: Iterable[str]) -> None:
    """Claim only runs of agents whose `queue` is one of these; none: of all."""
    global _served
    _served = frozenset(names)


def _is_served(known: RegisteredAgent) -> bool:
    return not _served or known.agent.queue in _served


def register(known: RegisteredAgent) -> Plan:
    """Store one agent's plan. Raises PlanChanged where runs of the same version wait for other code.

    While agents are being written (HOLDPOINT_DEVELOPMENT) the plan is stored all the same.
    """
    waiting = [] if settings.HOLDPOINT_DEVELOPMENT else under_way(known.spec)
    if waiting:
        raise PlanChanged(sentence(known.spec, waiting))
    return stored_plans.keep(known.spec)


@dataclass
class StoredPlans:
    """The plans that this process serves, by their row's id, and the versions that runs of other code keep waiting."""

    plans: dict[int, RegisteredAgent] = field(default_factory=dict)
    waiting: list[RegisteredAgent] = field(default_factory=list)
    looking: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def look(self) -> dict[int, RegisteredAgent]:
        """Store the versions that no longer wait: the runs of other code have ended, or were cancelled.

        One thread at a time, and the dict that others may be reading is replaced, not changed: else a thread that
        began with older rows would put them back.
        """
        with self.looking:
            stored, waiting = dict(self.plans), []
            for agent in self.waiting:
                try:
                    row = register(agent)
                except PlanChanged:
                    waiting.append(agent)
                else:
                    stored[row.pk] = replace(agent, row=row)
            self.plans, self.waiting = stored, waiting
            return stored


@cache
def _stored() -> StoredPlans:
    return StoredPlans(waiting=list(agents().values()))


def plans() -> dict[int, RegisteredAgent]:
    """Return the plans whose runs this process may claim, by plan id; stored on first use.

    A version whose code changed under runs is left out, and looked at again on each call.
    """
    found = known_plans()
    return {plan: agent for plan, agent in found.items() if _is_served(agent)} if _served else found


def known_plans() -> dict[int, RegisteredAgent]:
    """Return the plans whose code is here, as `plans` does, whether or not this worker serves their queues."""
    known = _stored()
    return known.look() if known.waiting else known.plans


def stored(known: RegisteredAgent) -> RegisteredAgent | None:
    """Return the same version with its plan's row; None while runs of other code keep it from being served."""
    return next((plan for plan in known_plans().values() if plan.agent is known.agent), None)


def forget() -> None:
    """Read the declarations anew on next use."""
    global _only, _known
    _only = _known = None
    _stored.cache_clear()


def know_only(only: DeclaredAgents | None) -> None:
    """Replace the registry by these agents: no module is read, and only their runs are claimed. None ends that."""
    global _only
    _only = only
    _stored.cache_clear()


@contextmanager
def knowing(only: DeclaredAgents) -> Iterator[None]:
    """Replace the registry by these agents inside the block."""
    before = _only
    know_only(only)
    try:
        yield
    finally:
        know_only(before)
