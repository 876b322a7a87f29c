"""Runs work in a forked process, like a worker that may be killed at any moment.

The parent opens no connection and starts no thread, so that its children inherit none. The runs are of copies of the
agents under the drill's own version, which no worker of the installation serves.
"""

from __future__ import annotations

import json
import logging
import multiprocessing
import traceback
from collections.abc import Callable
from functools import cache
from importlib import import_module
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, TypeVar, cast

from django.conf import settings

from agents.definition import fields, outputs, registry
from agents.definition.agent import Agent, AgentType
from agents.definition.plan_builder import plan_of
from agents.definition.registered import RegisteredAgent
from agents.effects.classify_failure import trusted
from agents.errors import AgentError
from agents.ringing import doorbell
from approvals.errors import DecisionRefused
from checkpoints import crash_points
from checkpoints.errors import PlanChanged, ValueRefused
from checkpoints.values.canonical_json import encode_canonical

MARK = "-drill"
LATE = ("agents.moves.rewind", "agents.runner.engine", "httpcore", "psycopg_pool")  # imported at their first use
LONGEST = 40  # characters of a version
Seen = dict[str, list[Any]]  # by effect, its outputs in order
Result = TypeVar("Result")
FORK = multiprocessing.get_context("fork")
EXPECTED = (AgentError, DecisionRefused, PlanChanged, ValueRefused)


class Witness:
    """Writes each effect's output to a file as it returns, also of a worker that dies before it can save it."""

    def __init__(self, known: RegisteredAgent, path: Path) -> None:
        self.known, self.path = known, path

    def __call__(self, point: str, step: str, value: Any) -> None:
        """Listen at the crash points; see checkpoints.crash_points."""
        if point != "after_effect":
            return
        try:
            output = outputs.checked(self.known.agent, self.known.spec, self.known.spec.step(step), value)
        except Exception:  # noqa: BLE001 - the runner says what is wrong with it
            return
        with self.path.open("ab") as file:
            file.write(encode_canonical([step, outputs.packed(output)]) + b"\n")

    def seen(self) -> Seen:
        """Return the recorded outputs by effect, in order."""
        found: Seen = {}
        for line in self.path.read_bytes().splitlines() if self.path.exists() else []:
            step, output = json.loads(line)
            found.setdefault(step, []).append(output)
        return found


def done_in_child(known: RegisteredAgent, work: Callable[[], Result], *, witness: Witness | None = None) -> Result:
    """Run `work` in a process of its own and return its result. Raises AgentError where it failed or was killed."""
    code, result = run_in_child(known, work, witness=witness)
    if result is None:
        raise AgentError(f"The drill's own process ended with {code} and said nothing.")
    return result


def run_in_child(
    known: RegisteredAgent, work: Callable[[], Result], *, witness: Witness | None
) -> tuple[int | None, Result | None]:
    """Run `work` in a process of its own; return its exit code (minus the signal's number) and its result, if any.

    Raises AgentError with the child's message where it failed.
    """
    reader, writer = FORK.Pipe(duplex=False)
    process = FORK.Process(target=_answer, args=(writer, known, work, witness))
    process.start()
    writer.close()
    try:
        error, result = reader.recv()
    except EOFError:  # it was killed
        error, result = "", None
    process.join()
    if error:
        raise AgentError(error)
    return process.exitcode, result


def _answer(writer: Connection, known: RegisteredAgent, work: Callable[[], Any], witness: Witness | None) -> None:
    _become_a_worker(known, witness)
    try:
        lines: tuple[str, Any] = ("", work())
    except EXPECTED as error:
        lines = (str(error) or type(error).__name__, None)
    except BaseException:  # noqa: BLE001 - the parent says it
        lines = (traceback.format_exc(), None)
    writer.send(lines)


def _become_a_worker(known: RegisteredAgent, witness: Witness | None) -> None:
    """Run one step a turn, so that each is a worker's first; send no doorbells: nobody else may take these runs."""
    logging.disable(logging.CRITICAL)
    settings.HOLDPOINT_TIME_SLICE = 0.0
    served = (known, *others(known.spec.agent))
    registry.know_only(registry.DeclaredAgents({(agent.spec.agent, agent.spec.version): agent for agent in served}))
    doorbell.silence()
    if witness is not None:
        crash_points.listen(witness)


def drill_version_of(known: RegisteredAgent) -> RegisteredAgent:
    """Return the agent under the drill's version. Raises AgentError."""
    version = known.spec.version[: LONGEST - len(MARK)] + MARK
    body = {"version": version, "__module__": known.agent.__module__, "__doc__": known.agent.__doc__}
    agent = cast(type[Agent], AgentType(known.agent.__name__, (known.agent,), body))
    return RegisteredAgent(agent, plan_of(agent))


@cache
def others(name: str) -> tuple[RegisteredAgent, ...]:
    """Return the other agents that this process knows, in their newest versions, for the runs that a step starts."""
    names = sorted({word for word, _ in registry.agents()} - {name})
    return tuple(drill_version_of(registry.agent_named(name)) for name in names)


def warm(*agents: RegisteredAgent) -> None:
    """Import modules and build adapters in this process, so that its children need not each do so."""
    for name in LATE:
        import_module(name)
    trusted()
    for known in agents:
        for name in known.agent.State.model_fields:
            fields.adapter(known.agent.State, name)
            fields.item_adapter(known.agent.State, name)
