"""Everything that a gate's page shows: the gate, its saved state, what changed, and what each choice does."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from .changes import ShownChanges
from .choices import OfferedChoices
from .gate_form import GateForm
from .saved_state import ShownState


@dataclass
class GatePage(GateForm):
    """What the templates of one gate read. Every part is read when it is first asked for."""

    @cached_property
    def saved(self) -> ShownState:
        """Return what the page says of the state that was asked over."""
        return ShownState(self)

    @cached_property
    def changed(self) -> ShownChanges:
        """Return what changed in what is asked."""
        return ShownChanges(self)

    @cached_property
    def choices(self) -> OfferedChoices:
        """Return what each choice does."""
        return OfferedChoices(self, self.saved)
