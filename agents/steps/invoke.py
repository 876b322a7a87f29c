"""Calls the agent's methods that are no steps: undos, readers, observations and validators.

Also here: time limits on the agent's own code.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import structlog

from agents.definition import fields
from agents.definition.decorators import MARK, Method, Undo
from agents.definition.plan_builder import KEY, parameter_names
from agents.errors import EffectFailed
from agents.session.heartbeat import HEART, ClaimBeat
from agents.session.run_session import RunSession

from . import alarms


@contextmanager
def limited(beat: ClaimBeat, seconds: float | None) -> Iterator[None]:
    """Raise StepTimeout inside the block after `seconds`, and again every second while it is swallowed.

    Code that ignores it, or that it cannot reach, is ended by the heartbeat.
    """
    if not seconds:
        yield
        return
    alarm = alarms.made(seconds)
    HEART.limit(beat, seconds, alarm.ring)
    try:
        with alarms.armed(alarm):
            yield
    finally:
        HEART.limit(beat, None)


log = structlog.get_logger()


def declared(session: RunSession, name: str) -> Undo:
    """Return the options of an undo; the defaults for a method without the decorator."""
    said = getattr(getattr(session.agent, name, None), MARK, None)
    return said if isinstance(said, Undo) else Undo()


def call_about(session: RunSession, name: str, step: str, state: Mapping[str, Any], *, key: str) -> Any:
    """Call an effect's undo or reader with the effect's state, as `call_method` does.

    Raises EffectFailed where the state lacks a field: its default would say nothing about the effect.
    """
    lacks = [each for each in parameter_names(getattr(session.agent, name)) if each != KEY and each not in state]
    if lacks:
        named = ", ".join(lacks)
        raise EffectFailed(f"{name} reads {named}, which the state of {step} does not have; nothing was called.")
    return call_method(session, name, state, key=key)


def call_method(session: RunSession, name: str, state: Mapping[str, Any], *, key: str = "") -> Any:
    """Call the method with the fields of `state` that its parameters name, typed; one named `key` gets `key`.

    It runs under its own time limit. Raises whatever it raises, and ValueRefused.
    """
    instance = session.instance()
    method = getattr(instance, name)
    said = getattr(method, MARK, None)
    wanted = parameter_names(getattr(session.agent, name))
    values = {each: fields.read(session.agent.State, each, state) for each in wanted if each != KEY}
    if KEY in wanted:
        values[KEY] = key
    began = time.monotonic()
    with limited(session.beat, said.timeout if isinstance(said, Method) else Method.timeout):
        returned = method(**values)
    log.info("method.returned", method=name, took_ms=round((time.monotonic() - began) * 1000, 1))
    return returned
