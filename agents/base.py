"""How an agent is written: a class of steps over a typed state.

A step's parameters are the state fields it reads; the dict it returns holds those it writes. Steps run in the
order of definition. The decorators only attach a `Declaration`; agents.planning reads it and refuses what
cannot work, before anything runs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal, TypeVar, overload

from pydantic import BaseModel

from .errors import AgentError

Method = TypeVar("Method", bound=Callable[..., Any])
MARK = "__holdpoint__"


@dataclass(frozen=True)
class Declaration:
    """What a decorator was told about one method."""

    kind: Literal["step", "effect", "gate"]
    writes: tuple[str, ...] | None = None
    uses: tuple[Callable[..., Any], ...] = ()
    reads_world: bool = False
    retries: int = 3  # further attempts after the first
    time_limit: float = 300.0  # seconds
    undo: str = ""
    irreversible: bool = False
    idempotent: bool = False
    guarded: bool = True
    policy: str = ""
    allows: tuple[str, ...] = ()
    edits: tuple[str, ...] = ()
    on_reject: str = ""
    on_expire: str = ""
    feedback: str | None = None  # None: `feedback` where the state has such a list


@dataclass(frozen=True)
class Jump:
    """Returned by a step: go on with the step of that name."""

    step: str
    writes: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Done:
    """Returned by a step: the run is complete."""

    writes: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class RunInfo:
    """What a step may know about its run."""

    id: int
    title: str


class _Steps(dict[str, Any]):
    """A class body in which no step silently replaces another."""

    def __setitem__(self, name: str, value: Any) -> None:
        if hasattr(self.get(name), MARK):
            raise AgentError(f"The step {name} is defined twice in {self.get('__qualname__', 'the agent')}.")
        super().__setitem__(name, value)


class AgentType(type):
    """Refuses a class body with two steps of one name."""

    @classmethod
    def __prepare__(mcs, name: str, bases: tuple[type, ...], /, **kwargs: Any) -> _Steps:
        return _Steps()

    def __new__(mcs, name: str, bases: tuple[type, ...], body: dict[str, Any], **kwargs: Any) -> AgentType:
        return super().__new__(mcs, name, bases, dict(body), **kwargs)


class Agent(metaclass=AgentType):
    """A class of steps over a typed state. One instance is made for each execution of a step."""

    name: ClassVar[str] = ""
    version: ClassVar[str] = "1"
    team: ClassVar[str] = ""  # the name of the team that its runs belong to by default
    State: ClassVar[type[BaseModel]]

    def __init__(self, run: RunInfo, attempt: int) -> None:
        self.run = run
        self.attempt = attempt
        self.notes: list[str] = []

    def note(self, text: str) -> None:
        """Say why this step did what it did; kept beside the checkpoint that it leads to."""
        self.notes.append(text)

    @classmethod
    def title(cls, state: Any) -> str:
        """The run's title, from its input (an instance of State)."""
        return cls.name

    @classmethod
    def inputs_from(cls, path: Path) -> list[dict[str, Any]]:
        """The inputs in a file or folder, one run each. AgentError where the agent reads none."""
        raise AgentError(f"The agent {cls.name} reads its input from JSON only.")


@overload
def step(method: Method, /) -> Method: ...
@overload
def step(
    *,
    reads_world: bool = False,
    writes: Sequence[str] | None = None,
    uses: Sequence[Callable[..., Any]] = (),
    retries: int = 3,
    time_limit: float = 300.0,
) -> Callable[[Method], Method]: ...
def step(
    method: Any = None,
    /,
    *,
    reads_world: bool = False,
    writes: Sequence[str] | None = None,
    uses: Sequence[Callable[..., Any]] = (),
    retries: int = 3,
    time_limit: float = 300.0,
) -> Any:
    """A unit of work. `reads_world`: it looks outside the state, so that its output is never reused."""
    said = Declaration(
        "step", _names(writes), tuple(uses), reads_world=reads_world, retries=retries, time_limit=time_limit
    )
    return _marked(said) if method is None else _marked(said)(method)


def effect(
    *,
    undo: str = "",
    irreversible: bool = False,
    idempotent: bool = False,
    guarded: bool = True,
    writes: Sequence[str] | None = None,
    uses: Sequence[Callable[..., Any]] = (),
    retries: int = 3,
    time_limit: float = 300.0,
) -> Callable[[Method], Method]:
    """A step that changes the outside world. A parameter named `key` gets the idempotency key.

    `undo` names the method that takes it back; `idempotent`: the provider does a key once, so that an unknown
    end may be tried again; `guarded=False`: it needs no gate's permission.
    """
    said = Declaration(
        "effect",
        _names(writes),
        tuple(uses),
        retries=retries,
        time_limit=time_limit,
        undo=undo,
        irreversible=irreversible,
        idempotent=idempotent,
        guarded=guarded,
    )
    return _marked(said)


def gate(
    *,
    policy: str = "default",
    allows: Sequence[str] = (),
    edits: Sequence[str] = (),
    on_reject: Any = "",
    on_expire: Any = "",
    feedback: str | None = None,
    uses: Sequence[Callable[..., Any]] = (),
    retries: int = 3,
    time_limit: float = 300.0,
) -> Callable[[Method], Method]:
    """A step that asks people. The method returns the Card to show, or None where there is nothing to ask.

    `allows`: the effects that a yes permits; `edits`: the fields that a reviewer may change; `on_reject`: the step
    it goes back to unless the reviewer says another; `on_expire`: the step to go on with when nobody answered.
    """
    said = Declaration(
        "gate",
        (),
        tuple(uses),
        retries=retries,
        time_limit=time_limit,
        policy=policy,
        allows=_named(allows),
        edits=tuple(edits),
        on_reject=_name(on_reject),
        on_expire=_name(on_expire),
        feedback=feedback,
    )
    return _marked(said)


def _marked(said: Declaration) -> Callable[[Method], Method]:
    def mark(method: Method) -> Method:
        setattr(method, MARK, said)
        return method

    return mark


def _name(step: Any) -> str:
    """A step's name, whether it was given as text or as the method itself."""
    return step if isinstance(step, str) else str(step.__name__)


def _named(steps: Sequence[Any]) -> tuple[str, ...]:
    return tuple(_name(each) for each in steps)


def _names(writes: Sequence[str] | None) -> tuple[str, ...] | None:
    return None if writes is None else tuple(writes)
