"""A value to be put in the place of an action's arguments, as JSON: an edit, reached from the reject menu."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from approvals.cards.action import Action
from approvals.errors import Problem

from .actions import ActionSheet


@dataclass(frozen=True, kw_only=True)
class Override:
    """One action's arguments as JSON, to be put in its place."""

    sheet: ActionSheet
    text: str
    errors: Sequence[str] = ()

    @property
    def number(self) -> int:
        return self.sheet.number

    @property
    def action(self) -> Action:
        return self.sheet.action


def overrides(sheets: Sequence[ActionSheet], written: Mapping[str, str], errors: Sequence[Problem]) -> list[Override]:
    """List a value for each action that can be edited: its own, or what somebody wrote, with what was wrong with it."""
    made = []
    for sheet in sheets:
        if sheet.value_text:
            said = [each["message"] for each in errors if each["action"] == sheet.action.id]
            text = written.get(sheet.action.id, sheet.value_text)
            made.append(Override(sheet=sheet, text=text, errors=said))
    return made
