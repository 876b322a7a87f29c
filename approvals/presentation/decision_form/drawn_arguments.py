"""Draws an action's arguments as its card hints: a diff, or a command. The exact arguments are shown beside it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from approvals.cards.action import Action
from approvals.cards.drawing import COMMAND, Drawing
from approvals.presentation.text import exact_call, line_diff, size_limit
from approvals.presentation.text.line_diff import Line
from checkpoints.values import json_pointer


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
    long: bool = False  # too long to be compared: it has no lines
    command: str = ""
    words: str = ""  # of whoever asks


def drawn_of(action: Action) -> list[DrawnArguments]:
    """Draw the arguments as they are now; what people's edits turned into something else is not drawn."""
    return [drawn for each in action.draws for drawn in _drawn(action, each)]


def _drawn(action: Action, drawing: Drawing) -> Iterator[DrawnArguments]:
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
        new="before" not in shown and not drawing.was, as_asked=bool(drawing.was),
    )  # fmt: skip
    if not size_limit.compares(len(before) + len(at)):
        yield replace(drawn, long=True)
        return
    added, removed = line_diff.counted(before, at)
    lines, unended = line_diff.compared(before, at), line_diff.unended(before, at)
    yield replace(drawn, lines=lines, added=added, removed=removed, unended=unended)
