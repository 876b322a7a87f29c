"""Work in a forked process, as a worker does it that may be killed at any moment.

The parent opens no connection and starts no thread, so that its children inherit none.
"""

from __future__ import annotations

import logging
import os
import pickle
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from django.conf import settings

from agents.definition.registered import RegisteredAgent
from agents.errors import AgentError
from agents.ringing import doorbell
from approvals.errors import DecisionRefused
from checkpoints import crash_points
from checkpoints.errors import PlanChanged, ValueRefused

from . import stand_in
from .witness import Witness

Result = TypeVar("Result")
EXPECTED = (AgentError, DecisionRefused, PlanChanged, ValueRefused)


@dataclass(frozen=True)
class ProcessEnd(Generic[Result]):
    """The end of a process: its exit status (minus the signal's number) and what its work returned."""

    code: int
    result: Result | None


def done_in_child(known: RegisteredAgent, work: Callable[[], Result], *, witness: Witness | None = None) -> Result:
    """Return what `work` returned in a process of its own. Raises AgentError where it failed or its process died."""
    ended = run_in_child(known, work, witness=witness)
    if ended.result is None:
        raise AgentError(f"The drill's own process ended with {ended.code} and said nothing.")
    return ended.result


def run_in_child(
    known: RegisteredAgent, work: Callable[[], Result], *, witness: Witness | None = None
) -> ProcessEnd[Result]:
    """Do `work` in a process of its own. Raises AgentError with what it said where it failed."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reader)
        _become_a_worker(known, witness)
        os._exit(_answer(writer, work))
    os.close(writer)
    with os.fdopen(reader, "rb") as answers:
        data = answers.read()
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    error, result = pickle.loads(data) if data else ("", None)  # noqa: S301 - this process's own words
    if error:
        raise AgentError(error)
    return ProcessEnd(code, result)


def _answer(writer: int, work: Callable[[], Any]) -> int:
    try:
        said: tuple[str, Any] = ("", work())
    except EXPECTED as error:
        said = (str(error) or type(error).__name__, None)
    except BaseException:  # noqa: BLE001 - the parent says it
        said = (traceback.format_exc(), None)
    with os.fdopen(writer, "wb") as answers:
        answers.write(pickle.dumps(said))
    return 1 if said[0] else 0


def _become_a_worker(known: RegisteredAgent, witness: Witness | None) -> None:
    """Run one step a turn, so that each is a worker's first; ring no bells, since nobody else may take these runs."""
    logging.disable(logging.CRITICAL)
    settings.HOLDPOINT_TIME_SLICE = 0.0
    stand_in.know_only(known)
    doorbell.silence()
    if witness is not None:
        crash_points.listen(witness)
