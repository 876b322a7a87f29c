"""The performer of external runs: hands work out, except what the program has just said that it begins."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from agents.models import Effect
from agents.session.performer import HandOut, Performer, Returned
from agents.session.run_session import RunSession
from checkpoints.runs.plans import StepSpec


@dataclass
class RemotePerformer(Performer[RunSession]):
    """Hands out work to a program.

    `card` is for the gate `asked`, `begun` is the step whose effect the program begins, and `undone` the id of the
    effect that it begins to undo. Each counts once, and a card for no other step.
    """

    asked: str = ""
    card: Returned | None = None
    begun: str = ""
    undone: int = 0

    def begins(self, session: RunSession, spec: StepSpec, undoes: Effect | None = None) -> bool:
        """Tell whether the program said that it begins this; otherwise hand it out."""
        begins = self.begun == spec.name if undoes is None else self.undone == undoes.pk
        self.begun, self.undone = "", 0
        if not begins:
            session.handed_out = HandOut(spec, undoes=undoes)
        return begins

    def step(self, session: RunSession, spec: StepSpec, **extra: Any) -> Returned | None:
        """Return the program's card; hand out everything else."""
        card, self.card = self.card, None
        if card is None or self.asked != spec.name:
            session.handed_out = HandOut(spec)
            return None
        return card

    def effect(self, session: RunSession, spec: StepSpec, row: Effect) -> None:
        """Hand out the effect with its intent, whose key the program sends."""
        session.handed_out = HandOut(spec, effect=row)

    def undo(self, session: RunSession, spec: StepSpec, row: Effect, undo: Effect) -> bool:
        """Hand out the undo with its intent, whose key the program sends."""
        session.handed_out = HandOut(spec, undoes=row, undo=undo)
        return False
