"""Performing: how what a step says gets done.

Where the agent's code is here, its methods are called in the worker (agents.steps.local_performer). Where it is
elsewhere, what is to be done is handed out (agents.remote.remote_performer): the slice is over then, and once the
program has done it, its answer is taken where the call would have returned.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from agents.models import Effect
from checkpoints.runs.plans import StepSpec

S = TypeVar("S")  # the RunSession: its module imports this one


@dataclass(frozen=True)
class Returned:
    """What a method returned, how long it took in seconds, and what it noted."""

    value: Any
    took: float
    notes: list[str]


@dataclass(frozen=True)
class HandOut:
    """What a program has to do next.

    `effect` is the row of an effect whose intent is written, `undoes` that of one which is to be undone, and `undo`
    that of undoing it, once its intent is written.
    """

    step: StepSpec
    effect: Effect | None = None
    undoes: Effect | None = None
    undo: Effect | None = None


class Performer(ABC, Generic[S]):
    """Does what the steps of a run say. None and False tell that it was handed out, so that the slice is over."""

    @abstractmethod
    def begins(self, slice: S, spec: StepSpec, undoes: Effect | None = None) -> bool:
        """Tell whether the intent of an effect, or of undoing one, may be written now."""

    @abstractmethod
    def step(self, slice: S, spec: StepSpec, **extra: Any) -> Returned | None:
        """Run the step, or ask for the gate's card. Raises whatever its method raises."""

    @abstractmethod
    def effect(self, slice: S, spec: StepSpec, row: Effect) -> Returned | None:
        """Send the effect whose intent is written in `row`. Raises whatever its method raises, and Fenced."""

    @abstractmethod
    def undo(self, slice: S, spec: StepSpec, row: Effect, undo: Effect) -> bool:
        """Undo the effect `row`; the intent is written in `undo`. Raises whatever its method raises, and Fenced."""
