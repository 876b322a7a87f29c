"""Reads what was posted under one prefix, by place. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from . import names

DEEPEST = 64  # levels of a name that is read, deeper than any input: every place that contains it is kept


def normalise_line_breaks(text: str) -> str:
    """Return the text with every line break as a line feed."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


def normalise_text(text: str) -> str:
    """Return a text as an input carries it: one kind of line break, no U+0000."""
    return normalise_line_breaks(text).replace("\0", "\ufffd")


def ancestors(path: str) -> Iterable[str]:
    """Yield a path and every place that contains it."""
    while path:
        yield path
        path = path.rpartition("/")[0]
    yield ""


@dataclass(frozen=True)
class SentFields:
    """The posted texts whose name begins with `prefix`; empty where nothing was posted yet."""

    prefix: str
    texts: Mapping[str, str] = field(default_factory=dict)
    places: frozenset[str] = frozenset()

    @classmethod
    def from_posted(cls, posted: Mapping[str, str], prefix: str) -> SentFields:
        """Pick the texts of this prefix from a posted form."""
        mine: dict[str, str] = {}
        places: set[str] = set()
        for name, text in posted.items():
            belongs_to, _, path = names.split(name)
            if belongs_to == prefix and path.count("/") <= DEEPEST:
                mine[name] = text
                places.update(ancestors(path))
        return cls(prefix, mine, frozenset(places))

    def name(self, path: str, mark: str = "") -> str:
        """Return the name of an input."""
        return self.prefix + mark + path

    def text(self, path: str, mark: str = "") -> str | None:
        """Return what was posted there; None where nothing was."""
        return self.texts.get(self.name(path, mark))

    def speaks_of(self, path: str) -> bool:
        """Tell whether anything was posted at this place or within it."""
        return path in self.places


class FieldFaults:
    """Messages by JSON Pointer, indexed by the places that contain them."""

    def __init__(self, messages: Mapping[str, str]) -> None:
        self.messages = dict(messages)
        self.places = {place for pointer in messages for place in ancestors(pointer)}

    def within(self, pointer: str) -> list[str]:
        """List every message at a place or within it."""
        if pointer not in self.places:
            return []
        return [word for place, word in self.messages.items() if names.within(pointer, place)]

    def moved(self, instead: Mapping[str, str]) -> FieldFaults:
        """Return the faults with some moved: `instead` maps place -> new place, or "" to drop one."""
        kept = {place: word for place, word in self.messages.items() if place not in instead}
        for place, word in self.messages.items():
            if instead.get(place):
                kept[instead[place]] = " ".join(filter(None, [kept.get(instead[place]), word]))
        return FieldFaults(kept)
