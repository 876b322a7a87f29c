"""Handing out: the runner comes to a method that it cannot call, because an external program does that.

What is to be done is raised as HandOut, past everything that guards against a step's own failures, up to whoever asked
for it. When the program has done it, the runner comes to the same place again with what it gave, and goes on.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from agents.models import Effect
from checkpoints.runs.plans import StepSpec


@dataclass(frozen=True)
class Given:
    """The program's result of a step: what its method would have returned."""

    step: str
    value: Any
    took: float = 0.0  # seconds
    notes: tuple[str, ...] = ()


class HandOut(BaseException):
    """The program has to do this next. No Exception: what a step raises is caught on the way, and this is none.

    `effect` is the row of an effect whose intent is written, `undoes` that of one which is to be taken back, and
    `undo` that of taking it back, once its intent is written.
    """

    def __init__(
        self, step: StepSpec, *, effect: Effect | None = None, undoes: Effect | None = None, undo: Effect | None = None
    ) -> None:
        super().__init__(step.name)
        self.step = step
        self.effect = effect
        self.undoes = undoes
        self.undo = undo


@dataclass
class Hands:
    """The runner's side of an external program: what it has given, and what it is about to do."""

    given: Given | None = None
    begins: str = ""  # the effect's step
    takes_back: int = 0  # the effect's id

    def take(self, step: StepSpec) -> Given:
        """Return what was given for the step, once. Raises HandOut where nothing was."""
        given, self.given = self.given, None
        if given is None or given.step != step.name:
            raise HandOut(step)
        return given

    def before(self, step: StepSpec) -> None:
        """Run before an effect's intent is written: raise HandOut unless the program said that it begins."""
        begins, self.begins = self.begins, ""
        if begins != step.name:
            raise HandOut(step)

    def before_undo(self, step: StepSpec, row: Effect) -> None:
        """Do the same for undoing `row`."""
        takes_back, self.takes_back = self.takes_back, 0
        if takes_back != row.pk:
            raise HandOut(step, undoes=row)
