"""The calls of tools inside a graph: made once, with keys for providers, and held to what was decided about them.

LangGraph runs an interrupted node again from its start, and a failed one too. `once` keeps the result of a call in the
run: across the interrupt, a crash, a retry, and until the superstep is over. `idempotency_key` is the same for the
same task in all of these, and another after a person's edit of the state. Where a task runs several tool calls, as a
ToolNode does, each call has its own.

A call that starts is the one that was approved. A middleware, a node or a wrapper may change a call after people have
seen it, or run one that they refused. So each tool's name and arguments are compared when it starts, behind all of
these, wherever in the graph and its subagents it is called. LangChain tells of a start by a callback, which may refuse
it.

A call is known by the id that the model gave it, within the graph whose model it was. The interrupts of LangChain's
batched form and of Agent Inbox have no id: there it is that of the equal call in the newest turn which the interrupted
node got, unless the tool had started before it asked.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import chain
from typing import Any, TypeVar
from uuid import UUID

from holdpoint.langgraph.interrupts import GraphQuestion, calls_in
from holdpoint.langgraph.values import decode_value, encode_value
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import AIMessage
from langgraph.config import get_config

from agents.errors import AgentError, StepFailed
from approvals.cards.action import APPROVE, EDIT, REJECT, RESPOND
from checkpoints.values import digests
from checkpoints.values.patch import are_same

from .bridge import Bridge
from .questions import as_json
from .validity import SINCE

Result = TypeVar("Result")
_here: ContextVar[tuple[Bridge, int] | None] = ContextVar("holdpoint_superstep", default=None)
tool_call: ContextVar[str] = ContextVar("holdpoint_tool_call", default="")  # the id of the call at hand
SHOWN = 200  # characters of an argument that are kept and shown
NAMESPACE = "langgraph_checkpoint_ns"
REFUSED = {REJECT: "was rejected at the gate", RESPOND: "was answered at the gate in place of the tool"}
NOBODY = "was not decided in time"
USED = (
    "was approved for one execution, before the run was sent back, edited or forked. Rewind the run to before its "
    "question: then it is asked about again"
)


@contextmanager
def inside(bridge: Bridge, run: int) -> Iterator[None]:
    """Let `once` and `idempotency_key` find the superstep inside the block."""
    token = _here.set((bridge, run))
    try:
        yield
    finally:
        _here.reset(token)


def once(name: str, fn: Callable[..., Result], *args: Any) -> Result:
    """Call fn(*args) once in this task or tool call and keep its result; a later call returns the kept result.

    Outside a run of Holdpoint it just calls, so that tools are tested as they are. A crash before the result is kept
    repeats the call: give the provider `idempotency_key()`. Raises Unsaveable for a result
    that cannot be kept.
    """
    here = _here.get()
    if here is None:
        return fn(*args)
    bridge, _ = here
    digest = digests.of_value([encode_value(argument, allow=bridge.allow) for argument in args]).hex()
    key = f"{_task()} {name} {digest}"
    if key in bridge.calls:
        kept: Result = decode_value(bridge.calls[key], allow=bridge.allow)
        return kept
    result = fn(*args)
    bridge.remember(key, result)
    return result


def idempotency_key(name: str = "") -> str:
    """Return this task's or tool call's key `name` for a provider: 32 hex digits. Raises AgentError outside a run."""
    here = _here.get()
    if here is None:
        raise AgentError("idempotency_key() was called outside a run of a GraphAgent.")
    return hashlib.sha256(f"R-{here[1]} {_task()} {name}".encode()).hexdigest()[:32]


def _task() -> str:
    """Return the namespace of the task at hand, which has the ids of all tasks above it, and the tool call's id."""
    return f"{get_config()['configurable'].get('checkpoint_ns', '')} {tool_call.get()}".strip()


def decided(questions: Sequence[GraphQuestion], since: str) -> dict[str, Any]:
    """Return what was decided about the calls of these questions, by call."""
    found: dict[str, Any] = {}
    for question in questions:
        if question.call:
            verdict = str((question.decided or {})["verdict"])
            runs = {"digest": _digest(question.name, question.arguments), "arguments": _brief(question.arguments)}
            bound = runs if verdict in (APPROVE, EDIT) else {}
            of_call = {"verdict": verdict, "name": question.name, SINCE: since, **bound}
            found[_key(question.graph, question.call)] = of_call
    return found


class CallGuard(BaseCallbackHandler):
    """Refuses the start of a tool whose call is not the one that was decided.

    `decided`: as of the function. `refused`: why, for each start that was refused: a node may swallow the error.
    `ran`: the names of the tools that started.
    """

    raise_error = True
    run_inline = True

    def __init__(self, decided: Mapping[str, Any], since: str) -> None:
        self.decided = dict(decided)
        self.since = since
        self.refused: list[str] = []
        self.ran: dict[str, None] = {}
        self._turns: dict[str, list[dict[str, Any]]] = {}  # the calls of the newest turn, by the task's namespace
        self._started: set[tuple[str, str]] = set()
        self._models: dict[UUID, str] = {}
        self._outer: dict[UUID, str] = {}  # the call in which a tool was started by another tool

    def asked(self, graph: str, task: str, value: Any) -> list[str] | None:
        """Return the ids of the calls that an interrupt's value asks about, "" for one that is not known.

        None where the task did not run in this superstep.
        """
        of_task = [name for name in self._turns if _graph_of(name) == graph and name.endswith(f":{task}")]
        if not of_task:
            return None
        place = of_task[0]
        left = [call for call in self._turns[place] if (place, str(call["id"])) not in self._started]
        ids = []
        for name, arguments, id in calls_in(value):
            wanted = [name, as_json(arguments)]
            alike = (call for call in left if not id and are_same([call["name"], as_json(call["args"])], wanted))
            same = next(alike, None)
            ids.append(id or str(same["id"] if same else ""))
            left = [call for call in left if call is not same]
        return ids

    def on_chain_start(
        self, serialized: Any, inputs: Any, *, metadata: Mapping[str, Any] | None = None, **rest: Any
    ) -> None:
        """Remember the newest turn of the model that a node gets."""
        place = str((metadata or {}).get(NAMESPACE, ""))
        if place and place not in self._turns:
            messages = inputs.get("messages") if isinstance(inputs, Mapping) else getattr(inputs, "messages", None)
            turns = (message for message in reversed(messages or []) if isinstance(message, AIMessage))
            last = next(turns, None) if isinstance(messages, list) else None
            self._turns[place] = [dict(call) for call in last.tool_calls] if last else []

    def on_chat_model_start(
        self, serialized: Any, messages: Any, *, run_id: UUID, metadata: Mapping[str, Any] | None = None, **rest: Any
    ) -> None:
        """Remember for which graph a model works."""
        self._models[run_id] = _graph_of(str((metadata or {}).get(NAMESPACE, "")))

    def on_llm_end(self, response: Any, *, run_id: UUID, **rest: Any) -> None:
        """Forget what was decided about a call whose id a model gives to another: some count from 0 in each turn."""
        graph = self._models.pop(run_id, None)
        for generation in chain.from_iterable(response.generations) if graph is not None else ():
            for call in getattr(getattr(generation, "message", None), "tool_calls", []):
                self.decided.pop(_key(graph or "", str(call["id"])), None)

    def on_tool_start(
        self, serialized: Mapping[str, Any], input_str: str, *, run_id: UUID, metadata: Mapping[str, Any] | None = None,
        inputs: Mapping[str, Any] | None = None, tool_call_id: str | None = None, **rest: Any,
    ) -> None:  # fmt: skip
        """Compare the call with what was decided, and let the tool know its id. Raises StepFailed."""
        place = str((metadata or {}).get(NAMESPACE, ""))
        self._started.add((place, str(tool_call_id)))
        found = self.decided.get(_key(_graph_of(place), str(tool_call_id)))
        arguments = input_str if inputs is None else dict(inputs)
        if found is not None and (why := self._differs(found, str(serialized["name"]), arguments)):
            self.refused.append(f"The call of {found['name']} ({tool_call_id}) {why}. It did not run.")
            raise StepFailed(self.refused[-1])
        self.ran[str(serialized["name"])] = None
        self._outer[run_id] = tool_call.get()
        tool_call.set(tool_call_id or self._outer[run_id])

    def on_tool_end(self, output: Any, *, run_id: UUID, **rest: Any) -> None:
        """Return to the call from which the tool was started, if there was one."""
        tool_call.set(self._outer.pop(run_id, ""))

    def on_tool_error(self, error: BaseException, *, run_id: UUID, **rest: Any) -> None:
        """Do as `on_tool_end`."""
        self.on_tool_end(None, run_id=run_id)

    def _differs(self, decision: Mapping[str, Any], name: str, arguments: Any) -> str:
        if decision["verdict"] not in (APPROVE, EDIT):
            return f"{REFUSED.get(decision['verdict'], NOBODY)}, and was about to run all the same"
        if decision[SINCE] != self.since:
            return USED
        if decision["digest"] == _digest(name, arguments):
            return ""
        differences = [] if name == decision["name"] else [f"the tool was to be {name}"]
        was, now = decision["arguments"], _brief(arguments)
        differences += [
            f"{argument} was {was.get(argument, 'absent')} and was to be {now.get(argument, 'absent')}"
            for argument in sorted({*was, *now})
            if was.get(argument) != now.get(argument)
        ]
        return f"was changed after it was approved: {', '.join(differences)}"


def _digest(name: str, arguments: Any) -> str:
    return digests.of_value([name, as_json(arguments)]).hex()


def _brief(arguments: Any) -> dict[str, str]:
    """Return each argument in JSON, cut, for words. A digest tells whether they are equal."""
    members: Iterable[tuple[str, Any]] = arguments.items() if isinstance(arguments, dict) else [("it", arguments)]
    made = {str(name): json.dumps(as_json(value), ensure_ascii=False) for name, value in members}
    return {name: text if len(text) <= SHOWN else f"{text[:SHOWN]}…" for name, text in made.items()}


def _graph_of(place: str) -> str:
    """Return the namespace of the graph that a task belongs to."""
    return place.rpartition("|")[0]


def _key(graph: str, call: str) -> str:
    return f"{graph} {call}"
