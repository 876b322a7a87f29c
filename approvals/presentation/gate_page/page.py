"""Everything that a gate's page shows: the gate, its saved state, what changed, and what each choice does."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from .asked_gate import AskedGate
from .changes import Changed
from .choices import Choices
from .saved_state import Saved


@dataclass
class GatePage(AskedGate):
    """What the templates of one gate read. Every part is read when it is first asked for."""

    @cached_property
    def saved(self) -> Saved:
        """Return what the page says of the state that was asked over."""
        return Saved(self)

    @cached_property
    def changed(self) -> Changed:
        """Return what changed in what is asked."""
        return Changed(self)

    @cached_property
    def choices(self) -> Choices:
        """Return what each choice does."""
        return Choices(self, self.saved)
