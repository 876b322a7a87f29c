"""Starts such a run, or finds it again by its key or its gate, and takes it on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from typing_extensions import TypedDict

from ..approvals import Pending
from ..client import AsyncHoldpoint
from ..errors import CannotResume, KeyReused, NotFound
from ..posting import Risk
from ..sending import to_json_data
from . import plan
from .driving import Framework, ToolRun
from .plan import TITLE, Words

R = TypeVar("R")


class Shown(TypedDict, total=False):
    """The texts that people read at the gates, beside the calls. `pinned` names arguments that are shown first."""

    title: str
    summary: str
    risk: Risk
    reasons: Sequence[str]
    pinned: Sequence[str]
    for_whom: str
    resource: str


class Placed(TypedDict, total=False):
    """The place of a run: the members are those of `hp.approve`, `holdpoint_agent` is its `agent`."""

    policy: str
    key: str
    holdpoint_agent: str
    team: str
    thread: str


@dataclass(frozen=True)
class Asked:
    """The arguments of an adapter's function, each where it belongs."""

    words: Words
    placed: Placed
    own: Mapping[str, Any]  # the framework's

    @classmethod
    def from_arguments(cls, given: Mapping[str, Any]) -> Asked:
        """Sort the arguments."""
        words = {name: value for name, value in given.items() if name in Shown.__annotations__}
        placed: Any = {name: value for name, value in given.items() if name in Placed.__annotations__}
        own = {name: value for name, value in given.items() if name not in words and name not in placed}
        return cls(Words(**words), placed, own)


async def start_tool_run(hp: AsyncHoldpoint, framework: Framework[R], input: Any, asked: Asked) -> ToolRun[R]:
    """Start a run with this input; the same key again is the same run. Raises KeyReused."""
    place, policy = asked.placed, asked.placed.get("policy", "")
    agent, key = place.get("holdpoint_agent", ""), place.get("key", "")
    version, doc = plan.version(framework.name, policy), "An agent of a framework, whose calls are approved one by one."
    await hp.register(version, plan.steps(policy), agent=agent or "-", state=plan.SCHEMA, doc=doc)
    given = {"input": to_json_data(input)}
    title, where = (asked.words.title or framework.agent)[:TITLE], (place.get("team", ""), place.get("thread", ""))
    try:
        run = await hp.start(given, agent=agent, version=version, title=title, team=where[0], thread=where[1], key=key)
    except KeyReused as error:
        message = f"The key {key!r} belongs to another input: go on with that one, or choose a new key for this one."
        raise KeyReused(error.status, {"code": error.code, "detail": message}) from None
    return ToolRun(hp, run, framework, asked.words)


async def find_tool_run(hp: AsyncHoldpoint, framework: Framework[R], gate: int, asked: Asked) -> ToolRun[R]:
    """Return the run of a gate. Raises CannotResume for a gate that is not of this framework's agents."""
    try:
        of = await hp.gate(gate)
    except NotFound:
        raise CannotResume(f"There is no gate {gate} of this agent. Take the number that defer gave you.") from None
    run = hp.run(of.run)
    if not (await run.read()).agent_version.startswith(plan.version(framework.name, "")):
        raise CannotResume(f"Gate {gate} was not opened by holdpoint.{framework.name}: resume it with what opened it.")
    return ToolRun(hp, run, framework, asked.words, gate)


async def run_to_end(run: ToolRun[R], timeout: float | None) -> R:
    """Take the run to its end, and return the framework's result."""
    result = await run.to_the_end(timeout=timeout, defer=False)
    if isinstance(result, Pending):
        raise AssertionError("it was to wait")
    return result
