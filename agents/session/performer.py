"""The performer interface: runs steps, effects and undos, here or in an external program.

If the agent's code is here, its methods are called in the worker (agents.steps.local_performer). If it is elsewhere,
the work is handed out (agents.remote.session_cache): the session is over then, and once the program has done it, its
answer is taken where the call would have returned.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from agents.models import Effect
from checkpoints.runs.plans import StepSpec
from checkpoints.store import Snapshot

S = TypeVar("S")  # the RunSession: its module imports this one
Beside = Callable[[Snapshot], None]  # what is written in the transaction of a save, which gets what was saved


@dataclass(frozen=True)
class Returned:
    """A method's return value, its duration in seconds, its notes, and what is written beside its checkpoint.

    `children` are the rows of the children that it counts on.
    """

    value: Any
    took: float
    notes: list[str]
    beside: Sequence[Beside] = ()
    children: Sequence[int] = ()


@dataclass(frozen=True)
class HandOut:
    """The work that an external program has to do next.

    `effect` is the row of an effect whose intent is written, `undoes` the row of an effect to be undone, and `undo`
    the undo's own row, once its intent is written.
    """

    step: StepSpec
    effect: Effect | None = None
    undoes: Effect | None = None
    undo: Effect | None = None


class Performer(ABC, Generic[S]):
    """Performs a run's steps. A return of None or False means that the work was handed out and the session is over."""

    @abstractmethod
    def begins(self, session: S, spec: StepSpec, undoes: Effect | None = None) -> bool:
        """Tell whether the intent of an effect, or of its undo, may be written now."""

    @abstractmethod
    def step(self, session: S, spec: StepSpec, **extra: Any) -> Returned | None:
        """Run the step's method, or a gate's for its card. Raises whatever it raises."""

    @abstractmethod
    def effect(self, session: S, spec: StepSpec, row: Effect) -> Returned | None:
        """Send the effect whose intent is written in `row`. Raises whatever its method raises, and Fenced."""

    @abstractmethod
    def undo(self, session: S, spec: StepSpec, row: Effect, undo: Effect) -> bool:
        """Undo the effect `row`; the intent is written in `undo`. Raises whatever its method raises, and Fenced."""
