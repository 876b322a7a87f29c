"""Performs steps in the worker: calls the methods of the agent's class, under their time limits."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import structlog

from agents.definition.agent import Agent
from agents.definition.plan_builder import KEY
from agents.models import Effect
from agents.session import translate_history
from agents.session.performer import Performer, Returned
from agents.session.run_session import RunSession
from checkpoints.errors import Fenced
from checkpoints.runs.plans import StepSpec

from .invoke import call_about, limited
from .memo import StepMemory

log = structlog.get_logger()


class LocalPerformer(Performer[RunSession]):
    """The performer that calls the agent's methods in the worker that holds the run."""

    def begins(self, session: RunSession, spec: StepSpec, undoes: Effect | None = None) -> bool:
        """Return True: the method is called as soon as the intent is written."""
        return True

    def step(self, session: RunSession, spec: StepSpec, **extra: Any) -> Returned:
        """Call the step's method with what it reads. Raises whatever it raises."""
        instance = session.instance()
        instance.memory = memory = StepMemory(session, spec)
        values = session.inputs(spec)
        memory.resources.restore(instance)
        method: Callable[..., Any] = getattr(type(instance), spec.name)
        log.info("step.started", step=spec.name, attempt=session.attempt)
        began = time.monotonic()
        with memory.watched(), limited(session.beat, spec.timeout):
            value = method(instance, **values, **extra)
            memory.start_rest()
        took = time.monotonic() - began
        log.info("step.returned", step=spec.name, attempt=session.attempt, took_ms=round(took * 1000, 1))
        notes = [session.clean(note) for note in (*map(str, instance.notes), *memory.spawning.notes)]
        return Returned(value, took, notes, memory.beside(), [*memory.spawning.used])

    def effect(self, session: RunSession, spec: StepSpec, row: Effect) -> Returned:
        """Call the effect's method as `step` does, with its key if it takes one. Raises Fenced before it is called."""
        if not session.beat.holds():
            raise Fenced
        return self.step(session, spec, **({KEY: row.key} if _takes_key(session.agent, spec) else {}))

    def undo(self, session: RunSession, spec: StepSpec, row: Effect, undo: Effect) -> bool:
        """Call the undo with the state that the effect left. Raises Fenced before it is called."""
        if not session.beat.holds():
            raise Fenced
        call_about(session, spec.undo, spec.name, translate_history.left_by(row, session.run.plan), key=undo.key)
        return True


LOCAL = LocalPerformer()


def _takes_key(agent: type[Agent], spec: StepSpec) -> bool:
    code = getattr(agent, spec.name).__code__
    return KEY in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
