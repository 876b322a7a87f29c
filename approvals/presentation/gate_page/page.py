"""A gate's page: the gate with its form, its saved state, the changes, and the choices."""

from __future__ import annotations

from dataclasses import dataclass

from django.utils.functional import cached_property

from .changes import ShownChanges
from .choices import OfferedChoices
from .gate_form import GateForm
from .saved_state import ShownState


@dataclass
class GatePage(GateForm):
    """The page of one gate, for its templates. Every part is read on first use."""

    @cached_property
    def saved(self) -> ShownState:
        """Return the saved state as the page shows it."""
        return ShownState(self)

    @cached_property
    def changed(self) -> ShownChanges:
        """Return the changes in what is asked."""
        return ShownChanges(self)

    @cached_property
    def choices(self) -> OfferedChoices:
        """Return the choices with their impacts."""
        return OfferedChoices(self, self.saved)
