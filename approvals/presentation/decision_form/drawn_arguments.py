"""Draws an action's arguments as its card hints: a diff, changed fields, or a command, beside the exact arguments."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Any

from approvals.cards.action import Action
from approvals.cards.drawing import COMMAND, DIFF, FIELDS, Drawing, present_of
from approvals.presentation.text import exact_call, line_diff, size_limit
from approvals.presentation.text.line_diff import Line
from checkpoints.values import json_pointer, patch


@dataclass(frozen=True, kw_only=True)
class DrawnArguments:
    """One drawing, with the names of the arguments that it shows."""

    kind: str
    arguments: Sequence[str]
    name: str = ""  # of what is changed
    lines: Sequence[Line] = ()
    added: int = 0
    removed: int = 0
    unended: bool = False  # a line break at the end comes or goes
    new: bool = False  # there is no text that goes
    as_asked: bool = False  # the text that goes is what the agent found there when it asked
    place: str = ""  # JSON Pointer of the new text in the arguments
    long: bool = False  # too long to be compared: it has no lines
    command: str = ""
    words: str = ""  # of whoever asks
    input: str = ""  # the input of the new text, where single changes of it may be left out
    rows: Sequence[Mapping[str, Any]] = ()  # of fields
    boxes: Mapping[int, bool] = field(default_factory=dict)  # number of a change -> whether it is left out

    @property
    def hunks(self) -> list[tuple[int, bool, list[Line]]]:
        """List the lines by change: (its number, 0 for what no box is beside; whether it is left out; its lines)."""
        runs = groupby(self.lines, key=lambda line: line.hunk if line.hunk in self.boxes else 0)
        return [(number, self.boxes.get(number, False), list(lines)) for number, lines in runs]


def drawn_of(action: Action) -> list[DrawnArguments]:
    """Draw the arguments as they are now; what people's edits turned into something else is not drawn."""
    return [drawn for each in action.draws for drawn in _drawn(action, each)]


def _fields(action: Action, drawing: Drawing) -> Iterator[DrawnArguments]:
    """Draw an object beside the one that is there now, field by field."""
    now, hidden = json_pointer.get(action.arguments, drawing.at), action.redaction.at(drawing.at)
    if isinstance(now, dict):
        rows = hidden.rows(patch.list_changes(present_of(drawing), now))
        placed = [{**row, "pointer": drawing.at + row["pointer"]} for row in rows]
        name = json_pointer.get(action.masked, drawing.name) if drawing.name else ""
        yield DrawnArguments(
            kind=FIELDS, arguments=[exact_call.dotted(drawing.at)] if drawing.at else [], rows=placed, as_asked=True,
            name=name if isinstance(name, str) else "",
        )  # fmt: skip


def before_of(action: Action, place: str) -> str | None:
    """Return the text that the one at a pointer takes the place of; None where no drawing says so."""
    for each in action.draws:
        if each.kind == DIFF and each.at == place:
            found = json_pointer.get(action.arguments, each.before) if each.before else each.was
            return found if isinstance(found, str) else None
    return None


def _drawn(action: Action, drawing: Drawing) -> Iterator[DrawnArguments]:
    if drawing.kind == FIELDS:
        yield from _fields(action, drawing)
        return
    shown = {member: json_pointer.get(action.masked, place) for member, place in drawing.places.items()}
    if not all(isinstance(value, str) for value in shown.values()):
        return
    arguments = [exact_call.dotted(drawing.places[member]) for member in ("before", "at") if member in drawing.places]
    at = shown["at"]
    if drawing.kind == COMMAND:
        yield DrawnArguments(kind=drawing.kind, arguments=arguments, command=at, words=shown.get("words", ""))
        return
    before = shown.get("before", drawing.was)
    drawn = DrawnArguments(
        kind=drawing.kind, arguments=arguments, name=shown.get("name", ""),
        new="before" not in shown and not drawing.was, as_asked=bool(drawing.was), place=drawing.at,
    )  # fmt: skip
    if not size_limit.compares(len(before) + len(at)):
        yield replace(drawn, long=True)
        return
    added, removed = line_diff.counted(before, at)
    lines, unended = line_diff.compared(before, at), line_diff.unended(before, at)
    yield replace(drawn, lines=lines, added=added, removed=removed, unended=unended)
