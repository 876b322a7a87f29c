"""A gate's page: the gate with its form, its saved state, the changes, and the choices."""

from __future__ import annotations

from dataclasses import dataclass, field

from .changes import ShownChanges
from .choices import OfferedChoices
from .gate_form import GateForm
from .saved_state import ShownState


@dataclass
class GatePage(GateForm):
    """The page of one gate, for its templates. Every part is read on first use."""

    saved: ShownState = field(init=False)
    changed: ShownChanges = field(init=False)
    choices: OfferedChoices = field(init=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.saved, self.changed = ShownState(self), ShownChanges(self)
        self.choices = OfferedChoices(self, self.saved)
