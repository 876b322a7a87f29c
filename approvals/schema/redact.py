"""Finds the secret places of a value, and hides them. Pure.

A JSON Schema marks them: pydantic writes `writeOnly: true, format: password` for SecretStr and SecretBytes. A veil
follows schema and value together, through references, unions, lists, free keys and conditions. Where several parts
describe one place and one of them hides it, it is hidden.

Whoever is judged may not hide what is judged. So `masking` says, by who wrote a schema, which of its marks count
before whoever decides: an external program's do not. `veil_marks` takes every schema at its word; it is for places
where nobody decides, such as messages and the search.

Hiding only changes what is shown: digests, permissions and what runs use the true value. So a text that a person edits
holds a placeholder, which names its place; sent back unchanged, the value there stays byte for byte.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any

from django.utils.functional import cached_property

from checkpoints.errors import ValueRefused
from checkpoints.values import json_pointer

from .walk import MOST, Schema, is_secret, list_parts, parts_within, reachable_parts, unveil_schema

MASK = "••••••••"
NOT_HERE = "the placeholder stands for a secret and stays where it was; put it back, or write a new secret there"
LEAST = 4  # least length of a secret that is searched for in the agent's words: a shorter one is in every text


class Source(Enum):
    """The author of a schema."""

    PLAN = auto()  # an agent of this server
    TOOL = auto()  # the people who registered a tool
    PROGRAM = auto()  # an external program, which is judged

    @classmethod
    def of_agent(cls, *, external: bool) -> Source:
        """Return who writes the schemas of an agent's plan and cards."""
        return cls.PROGRAM if external else cls.PLAN


@dataclass(frozen=True)
class Redaction:
    """The veil over one value: what a schema hides of it. `parts`: all parts of `root` that may describe the value."""

    root: Schema
    parts: tuple[Schema, ...]
    known: dict[int, bool] = field(default_factory=dict, compare=False, repr=False)  # part -> it hides something

    @cached_property
    def secret(self) -> bool:
        """Tell whether the value itself is hidden; so is one of too many parts to read, if any may hide something."""
        return any(is_secret(part) for part in self.parts) or (len(self.parts) >= MOST and self.hides)

    @cached_property
    def hides(self) -> bool:
        """Tell whether the value, or anything that may be within it, is hidden."""
        return any(map(self._hides, self.parts))

    def __bool__(self) -> bool:
        return self.hides

    def within(self, token: str) -> Redaction:
        """Return the veil of a member or an item."""
        found = [inner for part in self.parts for inner in parts_within(part, token)]
        return Redaction(self.root, tuple(list_parts(found, self.root)), self.known)

    def at(self, pointer: str) -> Redaction:
        """Return the veil of the value at a JSON Pointer; everything within a hidden value is hidden."""
        veil = self
        for token in json_pointer.split_pointer(pointer):
            if veil.secret:
                return veil
            veil = veil.within(token)
        return veil

    def places(self, value: Any, at: str = "") -> Iterator[str]:
        """Yield the pointers to the hidden places of `value`. None is no secret."""
        if not self or value is None:
            return
        if self.secret:
            yield at
            return
        for name, inner in _members(value):
            yield from self.within(name).places(inner, json_pointer.join(at, name))

    def masked(self, value: Any, at: str = "", *, named: bool = False) -> Any:
        """Copy `value`, which is at the pointer `at`, with the mask in place of what is hidden.

        `named`: with placeholders, for a text that is sent back and read by `restore`. Without secrets it is the same
        object.
        """
        if not self or value is None:
            return value
        if self.secret:
            return placeholder_for(at) if named else MASK
        return _copied(value, lambda name, v: self.within(name).masked(v, json_pointer.join(at, name), named=named))

    def restore(self, new: Any, old: Any) -> Any:
        """Return `new`, as somebody sent it, with the secrets of `old` in place of their placeholders.

        Raises ValueRefused for a placeholder that would stay as a value, or would move a secret to where it is shown.
        """
        return _restore(self, new, "", self, old) if self else new

    def rows(self, rows: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """Mask rows of a difference: a hidden value only shows that it changed."""
        return [self.row(row) for row in rows]

    def row(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """Mask one row, whose difference was taken between the true values."""
        veil = self.at(row["pointer"])
        sides = {side: veil.masked(row[side]) for side in ("before", "after") if side in row}
        if sides.get("before") == sides.get("after") == MASK:
            sides["after"] = f"{MASK} (another one)"
        return {**row, **sides}

    def patch(self, operations: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """Return a JSON Patch on the value, with placeholders for what is hidden."""
        return [
            {**operation, "value": self.at(operation["path"]).masked(operation["value"], operation["path"], named=True)}
            if "value" in operation
            else dict(operation)
            for operation in operations
        ]

    def words(self, value: Any) -> list[str]:
        """List the hidden texts of `value` that are long enough to be searched for in other texts; longest first."""
        found = {text for place in self.places(value) for text in _texts(json_pointer.find_value(value, place))}
        return sorted((text for text in found if len(text) >= LEAST), key=len, reverse=True)

    def _hides(self, part: Schema) -> bool:
        if id(part) not in self.known:
            self.known[id(part)] = any(map(is_secret, reachable_parts(part, self.root)))
        return self.known[id(part)]


def masking(schema: Schema, source: Source) -> Schema:
    """Return the schema by which values are drawn for whoever decides: a program's marks of secrets are taken out."""
    return unveil_schema(schema, {}) if source is Source.PROGRAM else schema


def veil(schema: Schema, source: Source, root: Schema | None = None) -> Redaction:
    """Return the veil that a schema puts over its values before whoever decides. `root` holds its definitions."""
    return OPEN if source is Source.PROGRAM else veil_marks(schema, root)


def veil_marks(schema: Schema, root: Schema | None = None) -> Redaction:
    """Return the veil over everything that a schema marks, whoever wrote it: for places where nobody decides."""
    whole = schema if root is None else root
    return Redaction(whole, tuple(list_parts([schema], whole)))


def placeholder_for(pointer: str) -> str:
    """Return the placeholder for the secret at `pointer` in a text that a person edits."""
    return f"{MASK} {pointer}"


def scrubbed(value: Any, words: Sequence[str]) -> Any:
    """Copy `value` with the mask in place of each of the words in its texts."""
    if isinstance(value, str):
        for word in words:
            value = value.replace(word, MASK)
        return value
    return _copied(value, lambda _, item: scrubbed(item, words))


def begun(text: str, words: Sequence[str]) -> int:
    """Count the characters at the end of an unfinished text that may begin one of the words."""
    ends = (n for word in words for n in range(min(len(word) - 1, len(text)), 0, -1) if text.endswith(word[:n]))
    return max(ends, default=0)


def _restore(veil: Redaction, new: Any, at: str, whole: Redaction, old: Any) -> Any:
    if isinstance(new, str) and new.startswith(MASK):
        return _meant(veil, new, at, whole, old)
    return _copied(new, lambda name, v: _restore(veil.within(name), v, json_pointer.join(at, name), whole, old))


def _meant(veil: Redaction, text: str, at: str, whole: Redaction, old: Any) -> Any:
    """Return the secret that a placeholder names; items may have moved in their list."""
    if not veil.secret and json_pointer.get(old, at) == text:
        return text  # a plain text that was there before
    named = text.removeprefix(MASK).removeprefix(" ")
    fits = (named == "" or named.startswith("/")) and _alike(named, at) and text == placeholder_for(named)
    there = json_pointer.get(old, named) if fits else None
    if not (veil.secret and there is not None and whole.at(named).secret):
        raise ValueRefused(at, NOT_HERE)
    return there


def _alike(pointer: str, other: str) -> bool:
    """Tell whether two pointers differ only in the positions of items."""
    a, b = (
        [("0" if token.isdigit() else token) for token in json_pointer.split_pointer(place)]
        for place in (pointer, other)
    )
    return a == b


def _copied(value: Any, change: Callable[[str, Any], Any]) -> Any:
    """Copy an object or a list with `change(name, member)` for each member; return any other value as it is."""
    if isinstance(value, dict):
        return {name: change(name, item) for name, item in value.items()}
    return [change(str(at), item) for at, item in enumerate(value)] if isinstance(value, (list, tuple)) else value


def _members(value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        yield from value.items()
    elif isinstance(value, list):
        yield from ((str(at), item) for at, item in enumerate(value))


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    for _, inner in _members(value):
        yield from _texts(inner)


OPEN = veil_marks({})  # hides nothing
