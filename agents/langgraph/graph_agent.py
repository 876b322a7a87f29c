"""The agent that a LangGraph graph is."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from types import FunctionType
from typing import Any, ClassVar

from holdpoint.langgraph.answers import EXPIRED, takes_silence
from holdpoint.langgraph.questions import GraphQuestion, Pending
from holdpoint.langgraph.questions import of as asked_by
from pydantic import BaseModel

from agents.definition.agent import Agent, Done, Jump
from agents.definition.options import GateOptions, StepOptions
from agents.errors import StepFailed
from approvals.cards.card import RISKS, Card

from . import answers, cards, channels, position, questions, seals, superstep, telling
from .channels import Feedback
from .compiled import CompiledGraph, compiled

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

    compiled: ClassVar[CompiledGraph]

    def __init_subclass__(cls, **options: Any) -> None:
        """Make the class's state and steps, if it has a graph."""
        super().__init_subclass__(**options)
        given = inspect.getattr_static(cls, "graph")
        if given is None:
            return
        cls.name = cls.__dict__.get("name") or WORDS.sub("-", cls.__name__).lower().strip("_")
        cls.compiled = compiled(given, where=f"The agent {cls.__name__}", allow=cls.allow, is_async=cls.is_async)
        if "State" not in cls.__dict__:
            cls.State = channels.state_of(cls.compiled.channels, cls.__name__)
        _declare(cls)

    @classmethod
    def title(cls, state: BaseModel) -> str:
        """Return the first words that the run begins with."""
        return cards.first_words(dict(state)) or cls.name

    @classmethod
    def result(cls, state: BaseModel) -> str:
        """Return the graph's last words."""
        return cards.last_words(dict(state))

    @classmethod
    def draw(cls, asked: Sequence[GraphQuestion]) -> Card:
        """Return the card for questions; override it to add to `super().draw(asked)`."""
        risks = [cls.risks.get(each.name, cls.risk) for each in asked if not each.decided]
        return cards.drawn(asked, risk=max(risks, key=RISKS.index, default=cls.risk))


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
        "prepare": (["langgraph", "questions", "decision"], StepOptions(title="Pass on a rejection, or ask")),
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
    if values["langgraph"] is not None:
        seals.check(values["langgraph"], values["answers"])
    came = superstep.take(self, type(self).compiled, values)
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


def prepare(self: GraphAgent, **values: Any) -> Any:
    """Turn what the graph waits for into questions, each in its own form."""
    at = values["langgraph"]
    now = questions.carried(_asked(self, at), values["questions"], fault=at.get("fault", ""))
    if values["decision"] is not None:  # a rejection or the deadline sent the run back to here
        return Jump("hear", {"questions": now})
    return Jump("ask", {"questions": now})


def _asked(agent: GraphAgent, at: Mapping[str, Any]) -> list[GraphQuestion]:
    """Return what the graph waits for."""
    asked = [each for one in at["asks"] for each in asked_by(Pending(**one), type(agent).compiled.schemas)]
    if at["stops"]:
        asked.append(questions.stop(at["root"]["head"]["id"], at["stops"]["where"], at["stops"]["nodes"]))
    return asked


def ask(self: GraphAgent, **values: Any) -> Card | None:
    """Ask about every question that nobody has decided; nothing where an edit of the state has outdated them."""
    if position.edited(type(self).compiled.channels, values, values["langgraph"]):
        return None
    return type(self).draw(values["questions"])


def hear(self: GraphAgent, **values: Any) -> Any:
    """Turn the decision into the answers that the graph gets."""
    asked: list[GraphQuestion] = values["questions"]
    seals.check(values["langgraph"], {})
    seals.check_questions(asked, _asked(self, values["langgraph"]))
    said: list[Feedback] = values["feedback"][values["heard"] :]
    words = next((each.text for each in reversed(said) if not each.action), "")
    decision = values["decision"] or {"kind": "approved"}
    silent = [each.title for each in asked if not (each.decided or takes_silence(each))]
    if decision["kind"] == EXPIRED and silent:
        raise StepFailed(f"Nobody decided in time, and the graph cannot be told so: {', '.join(silent)}.")
    found = answers.hear(asked, decision, words)
    at = seals.sealed(telling.of(values["langgraph"], found.told), found.answers)
    waiting = seals.kept(found.questions)
    heard = {"langgraph": at, "questions": waiting, "decision": None, "heard": len(values["feedback"])}
    if not found.answers:
        return Jump("prepare", {**heard, "answers": {}})
    return Jump("go", {**heard, "answers": found.answers})


_STEPS: dict[str, Callable[..., Any]] = {"go": go, "prepare": prepare, "ask": ask, "hear": hear}
