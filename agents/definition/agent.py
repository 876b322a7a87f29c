"""How an agent is written: a class of steps over a typed state.

A step's parameters are the state fields it reads; the dict it returns holds those it writes. Steps run in the
order of definition. The decorators of agents.definition.decorators say what kind of step a method is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Protocol

from pydantic import BaseModel

from agents.errors import AgentError

from .options import MARK


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


class Memory(Protocol):
    """What a running step may ask of the runtime."""

    def once(self, name: str, fn: Callable[..., Any], args: tuple[Any, ...], salt: Any) -> Any:
        """Return the kept result of fn(*args); call it where none is kept."""

    def refusals(self) -> list[str]:
        """List what validators said against the output that is being repaired."""

    def progress(self, text: str) -> None:
        """Show a text while the step runs."""


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


class Agent(metaclass=AgentType):
    """A class of steps over a typed state. One instance is made for each execution of a step."""

    name: ClassVar[str] = ""
    version: ClassVar[str] = "1"
    team: ClassVar[str] = ""  # the name of the team that its runs belong to by default
    State: ClassVar[type[BaseModel]]
    Config: ClassVar[type[BaseModel] | None] = None  # settings of a run that are no state; every field has a default
    libraries: ClassVar[tuple[str, ...]] = ()  # distributions whose versions matter to the outcome

    def __init__(self, run: RunInfo, attempt: int, config: Any = None) -> None:
        self.run = run
        self.attempt = attempt
        self.config = config  # an instance of Config
        self.notes: list[str] = []
        self.memory: Memory | None = None  # while a step, a gate or an effect runs

    def note(self, text: str) -> None:
        """Say why this step did what it did; kept beside the checkpoint that it leads to."""
        self.notes.append(text)

    def once(self, name: str, fn: Callable[..., Any], *args: Any, salt: Any = "") -> Any:
        """Call fn(*args) and keep its result; where it is kept already, return that and call nothing.

        Kept across a crash, a retry and a person's "try again", by `name`, the arguments and `salt`; made anew
        after "send back" or a refusal. Arguments and result must be JSON values, and the result comes back as
        decoded JSON, the first time too. A crash between the call and its keeping makes the call once more.
        """
        if self.memory is None:
            raise AgentError(f"once({name!r}) was called outside a running step, where nothing is kept.")
        return self.memory.once(name, fn, args, salt)

    def progress(self, text: str) -> None:
        """Show a text on the run's page while this step runs, in the place of the one before: words as a model makes
        them, or how far it is. No checkpoint keeps it; it is gone when the step has ended, and starts over with it.

        Say it as often as you like: it is written a few times a second at most, and whoever looks sees the newest.
        """
        if self.memory is not None:
            self.memory.progress(text)

    @property
    def refusals(self) -> list[str]:
        """List what validators said against the output that is being repaired, oldest first; empty without a repair.

        This is not part of the step's input: put what reuse should depend on into the state, into `feedback`.
        """
        return [] if self.memory is None else self.memory.refusals()

    @classmethod
    def title(cls, state: Any) -> str:
        """Return the run's title, from its input (an instance of State)."""
        return cls.name

    @classmethod
    def meters(cls, state: Any) -> Sequence[tuple[str, str, str]]:
        """Return figures for the run's page: (label, figure, a line below it), from the state at the head (a State)."""
        return ()

    @classmethod
    def result(cls, state: Any) -> str:
        """Say what the run came to; its page shows it once the run has ended. From the state at the head."""
        return ""

    @classmethod
    def lacks(cls) -> str:
        """Say what has to be set up, and how, before a run of this agent can work; empty where nothing has."""
        return ""

    @classmethod
    def inputs_from(cls, path: Path) -> list[dict[str, Any]]:
        """Return the inputs in a file or folder, one run each. AgentError where the agent reads none."""
        raise AgentError(f"The agent {cls.name} reads its input from JSON only.")
