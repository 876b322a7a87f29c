"""Runs work in a forked process, like a worker that may be killed at any moment.

The parent opens no connection and starts no thread, so that its children inherit none.
"""

from __future__ import annotations

import logging
import multiprocessing
import traceback
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any, TypeVar

from django.conf import settings

from agents.definition import registry
from agents.definition.registered import RegisteredAgent
from agents.errors import AgentError
from agents.ringing import doorbell
from approvals.errors import DecisionRefused
from checkpoints import crash_points
from checkpoints.errors import PlanChanged, ValueRefused

from . import stand_in
from .witness import Witness

Result = TypeVar("Result")
FORK = multiprocessing.get_context("fork")
EXPECTED = (AgentError, DecisionRefused, PlanChanged, ValueRefused)


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
    served = (known, *stand_in.others(known.spec.agent))
    registry.know_only(registry.DeclaredAgents({(agent.spec.agent, agent.spec.version): agent for agent in served}))
    doorbell.silence()
    if witness is not None:
        crash_points.listen(witness)
