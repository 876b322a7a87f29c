"""The base class of agents: a class of steps over a typed state.

A step's parameters are the state fields it reads; the dict it returns holds those it writes. Steps run in the
order of definition. The decorators of agents.definition.decorators say what kind of step a method is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, ClassVar, Protocol

from pydantic import BaseModel

from agents.errors import AgentError

from .decorators import MARK

STEPS, MILESTONES, EFFECTS = FREQUENCIES = ("steps", "milestones", "effects")  # see Agent.checkpoints


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
    """The run's id and title, as its steps see them."""

    id: int
    title: str


@dataclass(frozen=True)
class ChildRun:
    """A run that this one started, by its number and its agent's name."""

    run: int
    agent: str


@dataclass(frozen=True)
class ChildResult:
    """The end of a child: its status ("completed", "failed", "cancelled"), final state as JSON, and why it ended."""

    run: int
    status: str
    state: dict[str, Any]
    reason: str = ""


class Memory(Protocol):
    """The runtime's services for a running step: calls made once, refusals, and live text."""

    def once(self, name: str, fn: Callable[..., Any], args: tuple[Any, ...], salt: Any) -> Any:
        """Return the kept result of fn(*args); call it where none is kept."""

    def sent(self) -> tuple[str, str]:
        """Return the kind and step of the checkpoint from which the run came to this step."""

    def moves(self) -> Iterator[tuple[str, str, str]]:
        """Yield (checkpoint, its step, the step it led to) for each move of the run by people, the newest first."""

    def refusals(self) -> list[str]:
        """List the validators' objections to the output that is being repaired."""

    def progress(self, text: str) -> None:
        """Show a text while the step runs."""

    def checkpoint(self, value: Any, name: str, every: int | None, seconds: float | None) -> None:
        """Keep a value from which this step goes on after a crash."""

    def checkpointed(self, default: Any) -> Any:
        """Return the newest value that this execution kept, or `default`."""

    def sleep_until(self, moment: datetime | timedelta, name: str) -> None:
        """Return once it is `moment`."""

    def signal(self, name: str, timeout: timedelta | None) -> Any:
        """Return the value of the next signal of this name."""

    def name_checkpoint(self, name: str) -> None:
        """Name the checkpoint that this step saves."""

    def hold(self, name: str, thing: Any, described: Any) -> None:
        """Leave a thing open for later steps."""

    def held(self, name: str) -> Any:
        """Return what is open under this name."""

    def spawn(self, agent: str, input: Any, config: Mapping[str, Any] | None, name: str) -> ChildRun:
        """Return the child that this call starts, once."""

    def gather(self, children: Sequence[ChildRun], need: str | int) -> list[ChildResult | None]:
        """Return the children's results."""


class _Steps(dict[str, Any]):
    """The namespace of a class body: refuses a second step of the same name."""

    def __setitem__(self, name: str, value: Any) -> None:
        if hasattr(self.get(name), MARK):
            raise AgentError(f"The step {name} is defined twice in {self.get('__qualname__', 'the agent')}.")
        super().__setitem__(name, value)


class AgentType(type):
    """The metaclass of agents: refuses a class body with two steps of one name."""

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
    at_once: ClassVar[int] = 0  # how many of its runs are at work at once in a team; 0: as many as there are workers
    queue: ClassVar[str] = "default"  # for workers that serve some queues only: `manage.py worker --queue NAME`
    priority: ClassVar[int] = 5  # of its runs, unless another is given: from 0, the most urgent, to 9
    lasts: ClassVar[timedelta | None] = None  # the time after which a run that still lives is cancelled; None: no limit
    invariants: ClassVar[str] = "saves"  # when the rules of State are checked: at "saves", edits among them, or "edits"
    children_at_once: ClassVar[int] = 10  # how many runs that a run of it started are at work at once
    signals: ClassVar[Mapping[str, Any]] = {}  # name -> the type of its value; None: it has none
    checkpoints: ClassVar[str] = "steps"  # when steps are saved: each, at "milestones", or before "effects" and gates
    libraries: ClassVar[tuple[str, ...]] = ()  # distributions whose versions matter to the outcome
    # A method that answers people's questions at an open gate, see agents.definition.feedback; None: it takes none.
    answer: ClassVar[Callable[..., str] | None] = None
    answers_within: ClassVar[float] = 60.0  # seconds
    calls_at: ClassVar[str] = ""  # a JSON Pointer into what a step writes, to the names of the tools called inside it

    def __init__(self, run: RunInfo, attempt: int, config: Any = None) -> None:
        self.run = run
        self.attempt = attempt
        self.config = config  # an instance of Config
        self.notes: list[str] = []
        self.memory: Memory | None = None  # while a step, a gate or an effect runs

    def note(self, text: str) -> None:
        """Note why this step did what it did; the note is kept with the step's checkpoint."""
        self.notes.append(text)

    def once(self, name: str, fn: Callable[..., Any], *args: Any, salt: Any = "") -> Any:
        """Call fn(*args) once and keep its result; a later call returns the kept result.

        The result is kept by `name`, the arguments and `salt` across a crash, a retry and a person's "try again";
        after "send back" or a refusal the call is made anew. Arguments and result must be JSON values, and the result
        comes back as decoded JSON, the first time too. A crash before the result is kept repeats the call.
        """
        return self._services(f"once({name!r})").once(name, fn, args, salt)

    def progress(self, text: str) -> None:
        """Show a text on the run's page while this step runs, such as a model's words or how far it is.

        It replaces the text before. No checkpoint keeps it: it is deleted when the step ends, and starts over with it.
        Call this as often as you like: the text is written a few times a second at most, and readers see the newest.
        """
        if self.memory is not None:
            self.memory.progress(text)

    def checkpoint(self, value: Any, name: str = "", *, every: int | None = None, seconds: float | None = None) -> None:
        """Keep a JSON value from which this step goes on after a crash, in the place of the one before.

        With `every`, each `every`-th call since the last that did keeps its value; with `seconds`, one that comes so
        long after it; with neither, each call. A call with a `name` always does, and its value stays beside the others:
        a milestone.
        """
        self._services("checkpoint()").checkpoint(value, name, every, seconds)

    def checkpointed(self, default: Any = None) -> Any:
        """Return the newest value that this execution of the step kept by `checkpoint`; `default` where there is none.

        A crash, a retry and a person's "try again" find it; after "send back" the step begins anew.
        """
        return self._services("checkpointed()").checkpointed(default)

    def sleep_until(self, moment: datetime | timedelta, name: str = "sleep") -> None:
        """Wait until `moment`, for days if need be; no worker is held meanwhile.

        It is a time with its zone, or a duration from now on by the database's clock: this machine's may be wrong.

        The run is released, and when it is time this step starts again from its beginning: what it did before the wait
        is done again, unless `once` keeps it. A time that has passed returns at once. The first time that is given
        holds: a later call for the same wait returns when that has passed. People may end the wait on the run's page.
        """
        self._services("sleep_until()").sleep_until(moment, name)

    def wait_for_signal(self, name: str, timeout: timedelta | None = None) -> Any:
        """Wait for the next signal of this name, one of `signals`, and return its value; as `sleep_until`.

        A signal that came before the wait is kept for it. Raises SignalTimeout once `timeout` has passed since the
        first call.
        """
        return self._services("wait_for_signal()").signal(name, timeout)

    def name_checkpoint(self, name: str) -> None:
        """Name the checkpoint that this step or effect saves, which keeps it from retention.

        The last name counts. Where the step's output is reused instead, its checkpoint has no name.
        """
        self._services("name_checkpoint()").name_checkpoint(name)

    def hold(self, name: str, thing: Any, described: Any) -> None:
        """Leave a thing open for later steps, under a name that this step declares in `holds`.

        `described`: a JSON value without secrets, from which the method under @on_restore(name) reopens it. It is kept
        with the checkpoint that this step saves, and shown. The thing's `close`, if it has one, is called when the run
        goes on elsewhere or has ended.
        """
        self._services("hold()").hold(name, thing, described)

    def held(self, name: str) -> Any:
        """Return what a step before left open under this name of `holds`, reopened if need be; None if none did."""
        return self._services("held()").held(name)

    def spawn(
        self, agent: str, input: Mapping[str, Any] | BaseModel, config: Mapping[str, Any] | None = None, name: str = ""
    ) -> ChildRun:
        """Start a run of another agent, or of this one, and return it at once; `name` is its title.

        It belongs to this run's team, and to the person who started this run. A crash and a retry find the same child;
        after a rewind an equal one that is at work, or has completed, is taken over. `gather` waits for it; one that
        nobody gathers goes on by itself. At most `children_at_once` are at work at the same time.
        """
        return self._services("spawn()").spawn(agent, input, config, name)

    def gather(self, *children: ChildRun, need: str | int = "all") -> list[ChildResult | None]:
        """Wait until children have completed, and return their results in the order given; as `sleep_until`.

        `need`: "all" of them, the "first", or how many. Those that are not needed any more are cancelled, and have no
        result (None). Raises ChildFailed as soon as too few are left that could complete; the others are cancelled.
        """
        return self._services("gather()").gather(children, need)

    def _services(self, call: str) -> Memory:
        if self.memory is None:
            raise AgentError(f"{call} was called outside a running step, where nothing is kept.")
        return self.memory

    @property
    def refusals(self) -> list[str]:
        """List the validators' objections to the output that is being repaired, oldest first; empty without a repair.

        They are not part of the step's input: whatever reuse should depend on belongs in the state, in `feedback`.
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
        """Return the run's result in words, from the state at the head; its page shows it once the run has ended."""
        return ""

    @classmethod
    def lacks(cls) -> str:
        """Say what has to be set up, and how, before a run of this agent can work; empty when nothing is missing."""
        return ""

    @classmethod
    def inputs_from(cls, path: Path) -> list[dict[str, Any]]:
        """Return the inputs in a file or folder, one run each. AgentError where the agent reads none."""
        raise AgentError(f"The agent {cls.name} reads its input from JSON only.")
