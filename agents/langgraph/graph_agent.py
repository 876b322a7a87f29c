"""The agent that a LangGraph graph is."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from types import FunctionType
from typing import Any, ClassVar

from holdpoint.langgraph.interrupts import EXPIRED, GraphQuestion, Pending, takes_silence
from holdpoint.langgraph.interrupts import questions_in as asked_by
from holdpoint.langgraph.values import decode_value
from pydantic import BaseModel

from agents.definition.agent import Agent, Done, Jump
from agents.definition.decorators import GateOptions, StepOptions
from agents.definition.feedback import ANSWER
from agents.errors import StepFailed
from approvals.cards.card import RISKS, Card

from . import answers, calls, position, questions, seals, superstep, validity
from .compiled import CompiledGraph, Feedback, compile_graph, state_of

WORDS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")  # between the words of a class's name


class GraphAgent(Agent):
    """A LangGraph graph as an agent: give it a `graph`, and it is one.

    `graph`: a compiled graph, such as `create_agent` and `create_deep_agent` return; a StateGraph; a function under
    @entrypoint; or a function that returns one of these. Its checkpointer is Holdpoint's.
    `name`: made of the class's name, unless it has one. `policy`: of its gate. `risks`: tool -> its risk on the card.
    `allow`: classes beside LangGraph's own that its state may hold. `supersteps`: after which a person is asked.
    `timeout` and `retry`: of a superstep. `is_async`: run it by `astream`; where it is
    not said, a graph with a node or tool that can only be awaited is.
    """

    graph: ClassVar[Any] = None
    policy: ClassVar[str] = "default"
    risk: ClassVar[str] = "medium"
    risks: ClassVar[Mapping[str, str]] = {}
    allow: ClassVar[Sequence[Any]] = ()
    supersteps: ClassVar[int] = 1000
    timeout: ClassVar[float] = 600.0
    retry: ClassVar[int] = 3
    is_async: ClassVar[bool | None] = None
    libraries: ClassVar[tuple[str, ...]] = ("langgraph",)
    calls_at: ClassVar[str] = "/langgraph/ran"

    compiled: ClassVar[CompiledGraph]

    def __init_subclass__(cls, **options: Any) -> None:
        """Make the class's state and steps, if it has a graph."""
        super().__init_subclass__(**options)
        if (answer := cls.__dict__.get(ANSWER)) is not None:
            setattr(cls, ANSWER, _decoding(answer))
        given = inspect.getattr_static(cls, "graph")
        if given is None:
            return
        cls.name = cls.__dict__.get("name") or WORDS.sub("-", cls.__name__).lower().strip("_")
        cls.compiled = compile_graph(given, where=f"The agent {cls.__name__}", allow=cls.allow, is_async=cls.is_async)
        if "State" not in cls.__dict__:
            cls.State = state_of(cls.compiled.channels, cls.__name__)
        _declare(cls)

    @classmethod
    def title(cls, state: BaseModel) -> str:
        """Return the first words that the run begins with."""
        return questions.first_words(dict(state)) or cls.name

    @classmethod
    def result(cls, state: BaseModel) -> str:
        """Return the graph's last words."""
        return questions.last_words(dict(state))

    @classmethod
    def draw(cls, asked: Sequence[GraphQuestion]) -> Card:
        """Return the card for questions; override it to add to `super().draw(asked)`."""
        risks = [cls.risks.get(question.name, cls.risk) for question in asked if not question.decided]
        return questions.draw_card(asked, risk=max(risks, key=RISKS.index, default=cls.risk))


def _declare(cls: type[GraphAgent]) -> None:
    """Give the class its four steps. A step names each field that it reads: those of this graph's channels."""
    fields = list(cls.compiled.channels.fields.values())
    inputs = [] if cls.compiled.channels.keyed else ["input"]
    known = {
        "go": (
            [*inputs, *fields, "langgraph", "answers", "feedback", "heard"],
            StepOptions(
                title="Run the graph", writes=[*fields, "langgraph", "answers", "questions", "decision", "heard"],
                uses=cls.compiled.functions, timeout=cls.timeout, retry=cls.retry, loop_guard=cls.supersteps,
            ),
        ),
        "prepare": (
            ["langgraph", "questions", "decision"],
            StepOptions(title="Prepare the questions", writes=["langgraph", "questions", "decision"]),
        ),
        "ask": (
            [*fields, "langgraph", "questions"],
            GateOptions(
                title="Review what the graph asks", policy=cls.policy, edits=["questions"], on_reject="prepare",
                on_expire="prepare", on_skip="go",
            ),
        ),
        "hear": (
            ["langgraph", "questions", "decision", "feedback", "heard"],
            StepOptions(
                title="Hear the decision",
                writes=["langgraph", "questions", "decision", "heard", "answers"],
            ),
        ),
    }  # fmt: skip
    for name, (reads, options) in known.items():
        setattr(cls, name, options(_reading(_STEPS[name], reads)))


def _decoding(method: Callable[..., Any]) -> Callable[..., Any]:
    """Return the method that answers questions, given the channels' values as the graph has them."""

    @wraps(method)
    def answer(self: GraphAgent, **values: Any) -> Any:
        graph = type(self).compiled
        named = {name: values[name] for name in graph.channels.fields.values() if name in values}
        return method(
            self, **{**values, **{name: decode_value(value, allow=graph.allow) for name, value in named.items()}}
        )

    return answer


def _reading(method: Callable[..., Any], reads: Sequence[str]) -> Callable[..., Any]:
    """Return a copy of a method that takes **values, with a parameter for each field that it reads."""
    made = FunctionType(method.__code__, method.__globals__, method.__name__, method.__defaults__, method.__closure__)
    made.__doc__, made.__annotations__ = method.__doc__, dict(method.__annotations__)
    made.__qualname__, made.__module__ = method.__qualname__, method.__module__
    kinds = inspect.Parameter.POSITIONAL_OR_KEYWORD
    parameters = [inspect.Parameter(name, kinds) for name in ("self", *reads)]
    given = inspect.signature(method).return_annotation
    made.__signature__ = inspect.Signature(parameters, return_annotation=given)  # type: ignore[attr-defined]
    return made


def go(self: GraphAgent, **values: Any) -> Any:
    """Take the graph one superstep further; an interrupted node runs again from its start."""
    since = validity.newest_move(self)
    if values["langgraph"] is not None:
        seals.check(values["langgraph"], values["answers"])
        if (again := _asked_again(type(self).compiled, values, since)) is not None:
            self.note("Nobody has answered since the run was sent back, edited or forked: it asks again.")
            asked = seals.sealed(again, {})
            return Jump("prepare", {"langgraph": asked, "answers": {}, "questions": [], "decision": None})
    came = superstep.take(self, type(self).compiled, values, since)
    for note in came.notes:
        self.note(note)
    if came.refused:
        self.note(f"The graph did not take the answer: {came.refused}")
        asked = seals.sealed({**values["langgraph"], "fault": came.refused}, {})
        return Jump("prepare", {"langgraph": asked, "answers": {}, "decision": None})
    heard: dict[str, Any] = {"answers": {}, "decision": None, "heard": len(values["feedback"])}
    heard["langgraph"] = seals.sealed(came.writes["langgraph"], {})
    if came.asks:
        return Jump("prepare", {**came.writes, **heard})
    writes = {**came.writes, **heard, "questions": []}
    return Done(writes) if came.ends else Jump("go", writes)


def _asked_again(graph: CompiledGraph, values: Mapping[str, Any], since: str) -> dict[str, Any] | None:
    """Return the position with its questions asked again, if their answers do not hold and the graph would not ask.

    It asks by itself after an edit, when its interrupted nodes run again; but at a breakpoint it would go on.
    """
    at, answered = values["langgraph"], values["answers"]
    names = position.edited(graph.channels, values, at)
    stale = bool(answered) and at.get(validity.SINCE, "") != since
    asks = (stale or names or not answered) if at["stops"] else (stale and not names)
    if not asks:
        return None
    if names:
        at = {**position.moved(at, names, values=values, channels=graph.channels), "stops": at["stops"]}
    return validity.renewed(at)


def prepare(self: GraphAgent, **values: Any) -> Any:
    """Turn what the graph waits for into questions, each in its own form."""
    at = values["langgraph"]
    before = validity.valid(values["questions"], validity.newest_move(self))
    now = questions.carried(_asked(self, at), before, fault=at.get("fault", ""))
    if values["decision"] is not None and validity.decided_here(self):  # a rejection or the deadline led to here
        return Jump("hear", {"questions": now})
    if validity.sent_here(self, "prepare"):  # else an approval of the same questions would be reused
        seals.check(at, {})
        at = seals.sealed(validity.renewed(at), {})
    return Jump("ask", {"langgraph": at, "questions": now, "decision": None})


def _asked(agent: GraphAgent, at: Mapping[str, Any]) -> list[GraphQuestion]:
    """Return what the graph waits for."""
    asked = [
        question for pending in at["asks"] for question in asked_by(Pending(**pending), type(agent).compiled.schemas)
    ]
    if at["stops"]:
        asked.append(questions.stop(at["root"]["head"]["id"], at["stops"]["where"], at["stops"]["nodes"]))
    return asked


def ask(self: GraphAgent, **values: Any) -> Card | None:
    """Ask about every question that nobody has decided; nothing where an edit of the state has outdated them."""
    if position.edited(type(self).compiled.channels, values, values["langgraph"]):
        return None
    return type(self).draw(validity.valid(values["questions"], validity.newest_move(self)))


def hear(self: GraphAgent, **values: Any) -> Any:
    """Turn the decision into the answers that the graph gets."""
    seals.check(values["langgraph"], {})
    seals.check_questions(values["questions"], _asked(self, values["langgraph"]))
    if not (validity.decided_here(self) or validity.passed_on(self)):
        asks = seals.sealed(validity.renewed(values["langgraph"]), {})
        return Jump("prepare", {"langgraph": asks, "answers": {}, "decision": None})
    since = validity.newest_move(self)
    asked = validity.valid(values["questions"], since)
    said: list[Feedback] = values["feedback"][values["heard"] :]
    words = next((each.text for each in reversed(said) if not each.action), "")
    decision = values["decision"] or {"kind": "approved"}
    silent = [each.title for each in asked if not (each.decided or takes_silence(each))]
    if decision["kind"] == EXPIRED and silent:
        raise StepFailed(f"Nobody decided in time, and the graph cannot be told so: {', '.join(silent)}.")
    found = answers.hear(asked, decision, words)
    at = seals.sealed(_answered(values["langgraph"], found, since), found.answers)
    waiting = seals.kept(found.questions, since)
    heard = {"langgraph": at, "questions": waiting, "decision": None, "heard": len(values["feedback"])}
    if not found.answers:
        return Jump("prepare", {**heard, "answers": {}})
    return Jump("go", {**heard, "answers": found.answers})


def _answered(at: Mapping[str, Any], heard: answers.Heard, since: str) -> dict[str, Any]:
    """Return the position with what was decided about its calls, and what the model is to be told of it."""
    notes = [{**note, "mark": at["mark"]} for note in heard.notes]
    decided = {**at.get("decided", {}), **calls.decided(heard.answered, since)}
    return {**at, "told": [*at["told"], *notes], "decided": decided, validity.SINCE: since}


_STEPS: dict[str, Callable[..., Any]] = {"go": go, "prepare": prepare, "ask": ask, "hear": hear}
