"""Starts such a run or finds it again, and takes it from wherever it is to its end, or to the question it waits for.

Every step reads what it needs from the run's state, so it does not matter which process took the one before.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar, cast

from .. import errors
from ..answers import Turn
from ..approvals import Pending
from ..calls import FORGOTTEN, one_line, refuse_unfinished, result_as_json
from ..client import AsyncHoldpoint
from ..endings import end_sentence, gate_refusal
from ..errors import CannotResume, HoldpointError, KeyReused, NotFound, Problem, StateTooLarge, Unreachable
from ..posting import AskedUnder, Card
from ..runs import AsyncRun
from ..sending import encode_body, to_json_data
from . import plan
from .plan import TITLE, Came, Shown, Verdict, digest_call, entered_results, make_card, name_tool_calls, read_verdicts

R = TypeVar("R")
LOG = logging.getLogger("holdpoint")
LARGE = 1024 * 1024  # bytes of a state that may be the reason why a server does not answer
NOT_KEPT = (
    "{call} ran, but the server does not keep its result ({size:,} bytes): people are asked about it, and can enter a "
    "shorter one. Let the tool return less, or raise HOLDPOINT_STATE_LIMIT on the server."
)
AGAIN = 1.0  # seconds between two attempts to claim a run that another process has
COMES_WITHIN = 10.0  # seconds in which a framework makes the call at which the run stands


class Framework(Protocol[R]):
    """An adapter's work for its framework. `limitation` is shown on every card."""

    name: str
    agent: str
    limitation: str

    async def start(self, input: Any) -> Came[R]:
        """Run the agent from its input."""

    async def go_on(self, run: ToolRun[R]) -> Came[R]:
        """Run it from the checkpoint of the run's state, with the verdicts."""


class ToolRun(Generic[R]):
    """A run in progress, under a claim."""

    def __init__(self, hp: AsyncHoldpoint, run: AsyncRun, framework: Framework[R], shown: Shown, gate: int = 0) -> None:
        self.hp, self.run, self.framework, self.shown = hp, run, framework, shown
        self.gate = gate  # the newest that is known
        self.state: dict[str, Any] = {}
        self._one_at_a_time = asyncio.Condition()
        self._at = ""  # the id of the call at which the run stands, as far as it does
        self._under_way = False  # it was begun here, and has not ended

    @property
    def standing(self) -> str:
        """Return the id of the call at which the run stands; empty where any may come next."""
        return self._at

    @property
    def verdicts(self) -> list[Verdict]:
        """Return the verdicts on the calls of the newest gate."""
        return read_verdicts(self.state)

    async def to_the_end(self, *, timeout: float | None, defer: bool) -> R | Pending:
        """Work until the agent has ended, and return its result; with `defer`, until it asks.

        Raises StillOpen after `timeout` seconds of waiting for people; Rejected, Withdrawn and Stopped where they ended
        the run; AlreadyDone for a run that ended before.
        """
        result: R | None = None
        try:
            turn = await self._claimed(timeout, defer)
            while turn.next.kind or turn.gate is not None:
                if turn.gate is not None and not turn.next.kind:
                    self.gate = turn.gate
                    if defer:
                        return Pending(turn.gate, self.run.id, turn.gate_url or "")
                    await self.run.wait(timeout=timeout)
                    turn = await self._claimed(timeout, defer)
                    continue
                turn, came = await self._taken(turn, defer)
                result = came if came is not None else result
            if turn.status == "completed" and result is not None:
                return result
            raise await self._ended()
        except errors.RunEnded:
            raise await self._ended() from None
        except BaseException:
            await self._let_go()
            raise

    async def save(self, step: str, next_step: str | None = None, **fields: Any) -> Turn:
        """Save fields of the state. Raises StateTooLarge."""
        try:
            turn = await self.run.save(step, set=fields, next_step=next_step)
        except (Problem, Unreachable) as error:
            size = len(encode_body(fields))
            # A server closes the connection on a request that is far too large, before it was sent whole.
            if (isinstance(error, Problem) and (error.status == 413 or "the limit is" in str(error))) or size > LARGE:
                raise StateTooLarge(
                    f"The state of {self.framework.agent} is too large to be kept ({size:,} bytes): shorten its "
                    "history, keep large values outside and pass their names, or raise HOLDPOINT_STATE_LIMIT on the "
                    "server."
                ) from error
            raise
        self.state |= fields
        return turn

    async def perform(self, verdict: Verdict, tool: str, arguments: Any, do: Callable[[], Awaitable[Any]]) -> Any:
        """Perform one approved call as an effect, and return its result; the recorded one if it was done before."""
        if verdict.done:
            return verdict.result
        begun = await self.begin(verdict, tool, arguments)
        try:
            result = await do()
            refuse_unfinished(tool, result)
        except BaseException as error:
            await begun.unknown(one_line(error))
            raise
        await begun.done(result)
        return result

    async def begin(self, verdict: Verdict, tool: str, arguments: Any) -> Performing:
        """Begin the effect of one call; others wait meanwhile. Raises CannotResume for a call that nobody approved."""
        if digest_call(tool, arguments) != verdict.digest:
            other = f"{tool} would run with other arguments than people approved at gate {self.gate or '?'}"
            raise CannotResume(f"{other}, so it did not run. Start the agent anew.")
        async with self._one_at_a_time:
            await self._my_turn(verdict)
            standing, self._at, self._under_way = self._at, verdict.id, True
        try:
            if not standing:
                await self.save("go_on", "call", calling=verdict.id, before=self.state.get("results") or {})
            effect = await self.run.begin("call")
            stands = next((call for call in self.run.state["calls"] if call["id"] == verdict.id), None)
            performing = Performing(self, verdict.id, effect)
            if stands is None or digest_call(stands["tool"], stands["arguments"]) != digest_call(tool, arguments):
                await performing.unknown("The run has other arguments than the framework.")
                raise CannotResume(
                    f"The run's state has another call than {tool} by now. It did not run. Resume again."
                )
            self.run.check()
        except BaseException:
            await self.left_call(verdict.id)  # nobody else would, and the others wait for it
            raise
        return performing

    async def left_call(self, id: str) -> None:
        """Let the next call begin, if it is this one's turn."""
        async with self._one_at_a_time:
            if self._at == id:
                self._at, self._under_way = "", False
                self._one_at_a_time.notify_all()

    async def _my_turn(self, verdict: Verdict) -> None:
        """Wait for the call before this one to end. Raises CannotResume where the agent does not make it any more.

        The run may stand at a call that another process began. It comes first, if the framework calls it again: it does
        not where the tool takes other arguments by now.
        """
        while self._at not in ("", verdict.id):
            patience = None if self._under_way else COMES_WITHIN
            try:
                await asyncio.wait_for(self._one_at_a_time.wait(), patience)
            except asyncio.TimeoutError:
                if not self._under_way:
                    raise CannotResume(
                        f"The run stands at {self._at}, which the agent did not call again, so {verdict.tool} did not "
                        "run. Let the tool take what people approved, and resume."
                    ) from None

    async def _taken(self, turn: Turn, defer: bool) -> tuple[Turn, R | None]:
        """Take the next step of the plan."""
        step = turn.next.step
        if step == "agent":
            return await self._came("agent", await self.framework.start(self.state.get("input")))
        if step == "ready":
            heard = len(self.state.get("feedback") or []) > int(self.state.get("told") or 0)
            return await self.save("ready", "go_on" if heard else None), None
        if step == "review":
            return await self._ask(defer), None
        if step == "back":
            return await self.save("back", "go_on", results=entered_results(self.state)), None
        if turn.next.kind == "undo":
            raise CannotResume(f"Run {self.run.id} has to take back what it did, which this framework cannot.")
        self._at, self._under_way = self.state.get("calling") or "" if step == "call" else "", False
        return await self._came("go_on", await self.framework.go_on(self))

    async def _came(self, step: str, came: Came[R]) -> tuple[Turn, R | None]:
        """Save where the framework stopped."""
        if not came.calls:
            return await self.save(step, "", output=result_as_json(came.output)), came.result
        calls = name_tool_calls(came.calls)
        card = make_card(self.shown, self.framework.agent, calls, self.framework.limitation)
        turn = await self.save(
            step, None if step == "agent" else "ready", checkpoint=came.checkpoint,
            calls=[call.saved() for call in calls], card=card.body(), calling="", results={}, before={},
            told=len(self.state.get("feedback") or []),
        )  # fmt: skip
        return turn, None

    async def _ask(self, defer: bool) -> Turn:
        """Ask about the calls; without their schemas if the model's arguments do not fit those."""
        card = Card.model_validate(self.state["card"])
        try:
            return await self.run.ask("review", card, deferred=defer)
        except errors.Invalid as error:
            if error.code.startswith("tool_") or not any(action.arguments_schema for action in card.actions):
                raise
            LOG.warning("Asked without the tools' schemas: %s", error)
        bare = [
            {name: value for name, value in action.items() if name != "schema"} for action in card.body()["actions"]
        ]
        return await self.run.ask("review", Card.model_validate({**card.body(), "actions": bare}), deferred=defer)

    async def _claimed(self, timeout: float | None, defer: bool) -> Turn:
        """Claim the run, after people and other processes; with `defer`, do not wait for people.

        Raises StillOpen, RunEnded.
        """
        while True:
            try:
                turn = await self.run.claim()
            except errors.NotClaimable:
                row = await self.run.read()
                if row.gates:
                    self.gate = row.gates[-1]
                    if defer:
                        known: dict[str, Any] = {"status": row.status, "reason": row.reason, "token": 0, "seq": row.seq}
                        return Turn(run=row.id, gate=self.gate, gate_url=(await self.hp.gate(self.gate)).url, **known)
                    await self.run.wait(timeout=timeout)
                else:
                    await asyncio.sleep(AGAIN)
                continue
            self.state = dict(self.run.state)
            return turn

    async def _ended(self) -> HoldpointError:
        """Return why there is nothing to do in a run that has ended."""
        row = await self.run.read()
        known: dict[str, Any] = {"gate": self.gate, "run": row.id, "url": ""}
        if row.status == "completed":
            saved = await self.run.checkpoint(row.seq)
            message = f"Run {row.id} of {self.framework.agent} has ended already; use its result."
            return errors.AlreadyDone(message, result=saved.state.get("output"), **known)
        gate = await self.hp.gate(self.gate) if self.gate else None
        if gate is not None and (refusal := gate_refusal(gate, gate.actions, known | {"url": gate.url})) is not None:
            return refusal
        return errors.Stopped(end_sentence(f"Run {row.id} is {row.status}: {row.reason}"), reason=row.reason, **known)

    async def _let_go(self) -> None:
        """Release the run, so that another process need not wait for the lease to end."""
        if self.run.turn is None or not self.run.turn.next.kind:
            return
        try:
            await self.run.release()
        except HoldpointError as error:
            LOG.info("Run %s was not released: %s", self.run.id, error)


@dataclass
class Performing:
    """A call in progress, whose end is reported once."""

    tool_run: ToolRun[Any]
    id: str
    effect: Any
    reported: bool = False
    refused: HoldpointError | None = None  # why its result was not kept

    async def done(self, result: Any) -> None:
        """Report that it ran, with its result; a second report changes nothing. Raises StateTooLarge."""
        if self.reported:
            return
        results = {**(self.tool_run.state.get("results") or {}), self.id: result_as_json(result)}
        turn = await self._report(lambda: self.tool_run.run.done(self.effect, {"results": results}, next_step="go_on"))
        if turn is not None and turn.gate is not None:
            size = len(encode_body(results[self.id]))
            self.refused = StateTooLarge(NOT_KEPT.format(call=self.id, size=size))
            raise self.refused
        self.tool_run.state["results"] = results

    async def unknown(self, error: str = FORGOTTEN) -> None:
        """Report that nobody knows whether it ran: people are asked."""
        try:
            await self._report(lambda: self.tool_run.run.unknown(self.effect, error))
        except Problem as own:
            LOG.warning("Call %s could not be reported: %s", self.id, own)

    async def _report(self, send: Callable[[], Awaitable[Turn]]) -> Turn | None:
        if self.reported:
            return None
        self.reported = True
        try:
            return await send()
        except errors.ReportedBefore:
            LOG.info("Call %s was reported before", self.id)
            return None
        finally:
            await self.tool_run.left_call(self.id)


class Placed(AskedUnder, total=False):
    """The place of a run: the members are those of `hp.approve`, `holdpoint_agent` is its `agent`."""

    holdpoint_agent: str


def own_arguments(asking: Mapping[str, Any], known: type) -> dict[str, Any]:
    """Return those of the arguments of an adapter's function that are its framework's. Raises TypeError.

    `known`: a TypedDict with their names.
    """
    shared = Shown.__annotations__.keys() | Placed.__annotations__.keys()
    own = {name: value for name, value in asking.items() if name not in shared}
    if unknown := own.keys() - known.__annotations__.keys():
        raise TypeError(f"There are no arguments {', '.join(sorted(unknown))}.")
    return own


def _shown(asking: Mapping[str, Any]) -> Shown:
    return cast(Shown, {name: value for name, value in asking.items() if name in Shown.__annotations__})


async def start_tool_run(
    hp: AsyncHoldpoint, framework: Framework[R], input: Any, asking: Mapping[str, Any]
) -> ToolRun[R]:
    """Start a run with this input; the same key again is the same run. Raises KeyReused.

    `asking`: the arguments of an adapter's function.
    """
    shown, policy = _shown(asking), asking.get("policy", "")
    agent, key = asking.get("holdpoint_agent", ""), asking.get("key", "")
    version, doc = plan.version(framework.name, policy), "An agent of a framework, whose calls are approved one by one."
    await hp.register(version, plan.steps(policy), agent=agent or "-", state=plan.SCHEMA, doc=doc)
    try:
        run = await hp.start(
            {"input": to_json_data(input)}, agent=agent, version=version, key=key,
            title=(shown.get("title") or framework.agent)[:TITLE], team=asking.get("team", ""),
            thread=asking.get("thread", ""),
        )  # fmt: skip
    except KeyReused as error:
        message = f"The key {key!r} belongs to another input: go on with that one, or choose a new key for this one."
        raise KeyReused(error.status, {"code": error.code, "detail": message}) from None
    return ToolRun(hp, run, framework, shown)


async def find_tool_run(
    hp: AsyncHoldpoint, framework: Framework[R], gate: int, asking: Mapping[str, Any]
) -> ToolRun[R]:
    """Return the run of a gate. Raises CannotResume for a gate that is not of this framework's agents."""
    try:
        run = hp.run((await hp.gate(gate)).run)
    except NotFound:
        raise CannotResume(f"There is no gate {gate} of this agent. Take the number that defer gave you.") from None
    if not (await run.read()).agent_version.startswith(plan.version(framework.name, "")):
        raise CannotResume(f"Gate {gate} was not opened by holdpoint.{framework.name}: resume it with what opened it.")
    return ToolRun(hp, run, framework, _shown(asking), gate)


async def run_to_end(run: ToolRun[R], timeout: float | None) -> R:
    """Take the run to its end, and return the framework's result."""
    result = await run.to_the_end(timeout=timeout, defer=False)
    if isinstance(result, Pending):
        raise AssertionError("it was to wait")
    return result
