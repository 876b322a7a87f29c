"""Says how an action's arguments are drawn: as a diff of two texts, as changed fields, or as a command.

A drawing is a hint of whoever asks. It shows arguments and nothing else, and the exact arguments stay beside it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from checkpoints.errors import ValueRefused
from checkpoints.values import canonical_json, json_pointer

DIFF, FIELDS, COMMAND = "diff", "fields", "command"
KINDS = (DIFF, FIELDS, COMMAND)
MOST = 50  # of one action


@dataclass(frozen=True, kw_only=True)
class Drawing:
    """One drawing. All places are JSON Pointers to texts in the arguments; "" where there is none.

    `was` is a text itself, that whoever asks read elsewhere, as from a file: nothing holds it to be so still. Changed
    fields are those of the object at `at`, "" for all arguments, compared with the object in `was`, as JSON.
    """

    kind: str  # "diff", "fields" or "command"
    at: str  # the new text, or the command
    before: str = ""  # of a diff: the text that goes
    name: str = ""  # of a diff: the name of what is changed
    words: str = ""  # of a command: what the agent says about it
    was: str = ""  # of fields, and of a diff without `before`: what was there when the agent asked

    @property
    def places(self) -> Mapping[str, str]:
        """Return its places, by the member that names each."""
        return {name: place for name, place in asdict(self).items() if name not in ("kind", "was") and place}

    def to_json(self) -> dict[str, str]:
        """Return it with the members that are set."""
        return {"kind": self.kind, "at": self.at, **self.places} | ({"was": self.was} if self.was else {})


def faults_of(drawings: Sequence[Drawing], arguments: Any) -> Iterator[tuple[int, str, str]]:
    """Yield (number, member, fault): a drawing of nothing would look as if there were nothing to see."""
    for number, each in enumerate(drawings):
        if each.kind not in KINDS:
            yield number, "kind", f"is none of {', '.join(KINDS)}"
        if each.kind == FIELDS:
            yield from _of_fields(number, each, arguments)
            continue
        if each.was and (each.before or each.kind != DIFF):
            yield number, "was", "is for a diff without before"
        if not each.at:
            yield number, "at", "names no place in the arguments"
        for member, place in each.places.items():
            if not isinstance(json_pointer.get(arguments, place), str):
                yield number, member, f"there is no text at {place} in the arguments"


def present_of(drawing: Drawing) -> dict[str, Any]:
    """Return the object with which changed fields are compared; {} for none."""
    try:
        found = canonical_json.parse_json(drawing.was)
    except ValueRefused:
        return {}
    return found if isinstance(found, dict) else {}


def _of_fields(number: int, drawing: Drawing, arguments: Any) -> Iterator[tuple[int, str, str]]:
    if not present_of(drawing):
        yield number, "was", "is no JSON object with the fields that are there now"
    if not isinstance(json_pointer.get(arguments, drawing.at), dict):
        yield number, "at", f"there is no object at {drawing.at} in the arguments"
    if drawing.before or drawing.words:
        yield number, "before" if drawing.before else "words", "is not for fields"
