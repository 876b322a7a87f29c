"""Keeps open, across checkpoints, what steps hold: database sessions, browsers, tools.

A thing lives in the worker process that opened it; what is saved is its description. The next step that holds it gets
the thing itself where the run went straight on in the same process. After a crash, a rewind or a fork, or in another
process, the agent's `on_restore` method reopens it from the newest description on the path, before the step runs. A
step that failed may have left it in any condition, so it is closed then and reopened too.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from dataclasses import dataclass
from functools import partial
from threading import Lock
from typing import Any
from uuid import UUID

import structlog
from django.db import transaction

from agents.definition import environment
from agents.definition.agent import Agent
from agents.definition.decorators import MARK, Method
from agents.definition.environment import VARIABLE
from agents.errors import AgentError, StepFailed, StepTimeout
from agents.models import OpenResource
from agents.session.run_session import RunSession
from checkpoints import crash_points
from checkpoints.errors import ValueRefused
from checkpoints.models import Run
from checkpoints.runs.plans import StepSpec
from checkpoints.store import Snapshot
from checkpoints.values.canonical_json import encode_canonical
from checkpoints.values.checkpoint_kinds import OUTPUT_LANDED

from .invoke import limited

RUNS = 100  # whose things a process keeps open; of more, those that went on longest ago are closed
LARGEST = 100_000  # bytes of one description
log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class OpenThings:
    """The things that a run holds open in this process, by name, as its checkpoint `at` left them."""

    at: UUID
    things: dict[str, Any]


class ProcessResources:
    """The things that runs hold open in this process. A run is worked on by one thread at a time."""

    def __init__(self) -> None:
        self._runs: OrderedDict[int, OpenThings] = OrderedDict()
        self._lock = Lock()

    def take(self, run_id: int) -> OpenThings | None:
        """Hand out the things of a run; whoever takes them puts them back, or closes them."""
        with self._lock:
            return self._runs.pop(run_id, None)

    def put(self, run_id: int, things: OpenThings) -> None:
        """Keep the things of a run open; close those of the run that went on longest ago if there are too many."""
        with self._lock:
            before = self._runs.pop(run_id, None)
            self._runs[run_id] = things
            oldest = self._runs.popitem(last=False)[1] if len(self._runs) > RUNS else None
        for left in (before, oldest):
            if left is not None:
                close(left.things)

    def let_go(self, run: Run) -> None:
        """Close what the run holds open here if it has ended."""
        if run.pk in self._runs and not Run.objects.filter(pk=run.pk, status__in=Run.LIVE).exists():
            left = self.take(run.pk)
            close({} if left is None else left.things)


HERE = ProcessResources()


def close(things: dict[str, Any]) -> None:
    """Close the things that have a method `close`. What it raises is logged: nobody waits for them any more."""
    for name, thing in things.items():
        end = getattr(thing, "close", None)
        try:
            if callable(end):
                end()
        except Exception as error:  # noqa: BLE001 - nobody can do anything about it
            log.warning("resource.not_closed", resource=name, error=repr(error))


class StepResources:
    """The things that one execution of a step finds open, and those that it leaves open."""

    def __init__(self, session: RunSession, spec: StepSpec) -> None:
        self.session = session
        self.spec = spec
        self._things: dict[str, Any] = {}
        self._described: dict[str, bytes] = {}

    def restore(self, instance: Agent) -> None:
        """Make ready what the step holds. Raises StepFailed where that cannot be done."""
        if not self.spec.holds:
            return
        path = [place.id for place in self.session.path if place.kind in OUTPUT_LANDED]
        known = OpenResource.objects.newest(path, self.spec.holds)
        taken = HERE.take(self.session.run.pk)
        if taken is not None and taken.at == self._last_held():
            self._things = taken.things
        elif taken is not None:
            close(taken.things)
        for name in self.spec.holds:
            if name.startswith(VARIABLE):
                self._compare(name, known.get(name))
            elif name in known and name not in self._things:
                self._things[name] = self._reopened(instance, known[name])

    def hold(self, name: str, thing: Any, described: Any) -> None:
        """Leave a thing open under a name of the step's `holds`, with its description. Raises AgentError."""
        if name not in self.spec.holds or name.startswith(VARIABLE):
            raise AgentError(f"{self.spec.name} does not declare {name!r} in `holds`, so it cannot be held open.")
        if self.spec.kind != "step":
            raise AgentError(f"{self.spec.name} is an effect, whose result may be adopted; let a step open {name!r}.")
        try:
            content = encode_canonical(described)
        except ValueRefused as error:
            raise AgentError(f"hold({name!r}): the description {error.reason}, so it cannot be kept.") from error
        if len(content) > LARGEST:
            raise AgentError(f"hold({name!r}): the description has {len(content):,} bytes; {LARGEST:,} are the most.")
        if self.session.clean(content.decode()) != content.decode():
            raise AgentError(f"hold({name!r}): the description has a secret of the state in it; it is kept and shown.")
        self._things[name], self._described[name] = thing, content

    def held(self, name: str) -> Any:
        """Return what is open under this name; None where nothing was ever opened. Raises AgentError."""
        if name not in self.spec.holds:
            raise AgentError(f"{self.spec.name} does not declare {name!r} in `holds`.")
        return self._things.get(name)

    def drop(self) -> None:
        """Close everything: the step failed."""
        things, self._things = self._things, {}
        close(things)

    def keep(self, saved: Snapshot) -> None:
        """Keep the descriptions with the step's checkpoint, in the transaction of its save; and the things after it."""
        if self._described:
            OpenResource.objects.keep(saved.run_id, saved.id, self.spec.name, self._described)
        if self._things:
            things = OpenThings(saved.id, self._things)
            transaction.on_commit(partial(HERE.put, saved.run_id, things))

    def _last_held(self) -> UUID | None:
        """Return the newest checkpoint on the path of a step that holds anything."""
        holding = {step.name for step in self.session.plan.steps if step.holds}
        places = reversed(self.session.path.places)
        return next((each.id for each in places if each.kind in OUTPUT_LANDED and each.step in holding), None)

    def _compare(self, name: str, known: OpenResource | None) -> None:
        """Compare an environment variable with its value when the run began to depend on it, or keep that."""
        value = os.environ.get(name.removeprefix(VARIABLE))
        if known is None:
            self._described[name] = encode_canonical(value)
        elif known.content != value:
            before, now = ("not set" if each is None else repr(each) for each in (known.content, value))
            raise _not_restored(name, f"it was {before}, and is {now} here")

    def _reopened(self, instance: Agent, known: OpenResource) -> Any:
        """Call the agent's method. Raises StepFailed whatever goes wrong."""
        method = environment.restorers(self.session.agent)[known.name]
        said = getattr(getattr(self.session.agent, method), MARK)
        crash_points.point("before_restore", self.spec.name)
        log.info("resource.restored", resource=known.name, step=self.spec.name)
        content = known.content
        try:
            with limited(self.session.beat, said.timeout if isinstance(said, Method) else Method.timeout):
                thing = getattr(instance, method)(content)
        except (Exception, StepTimeout, SystemExit) as error:
            raise _not_restored(known.name, f"{type(error).__name__}: {error}") from error
        if thing is None:
            raise _not_restored(known.name, f"{method} returned nothing")
        return thing


def _not_restored(name: str, why: str) -> StepFailed:
    return StepFailed(f"cannot be restored: {name}: {why}")
