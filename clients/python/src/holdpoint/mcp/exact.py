"""Compares what people approved with what was asked: a call is made with these arguments or not at all. Pure."""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

DEEP = 100  # levels of lists and objects


class NotExact(ValueError):
    """A value that JSON cannot hold, or an approval that does not belong to what was asked."""


def canonical(value: Any) -> bytes:
    """Return the canonical JSON of a value, in which 1, 1.0 and true differ. Raises NotExact."""
    try:
        text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
        return text.encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise NotExact(f"These arguments are not JSON: {error}.") from None


def digest(*values: Any) -> str:
    """Return SHA-256 over the canonical JSON of the values, in hex. Raises NotExact."""
    return hashlib.sha256(canonical(values)).hexdigest()


def checked(asked: Mapping[str, Any], edits: Sequence[Mapping[str, Any]], got: Mapping[str, Any]) -> dict[str, Any]:
    """Return `got` where it is what was asked with people's edits. Raises NotExact."""
    if canonical(got) != canonical(edited(asked, edits)):
        raise NotExact("What was approved is not what was asked, so it is not done. Ask again.")
    return dict(got)


def edited(value: Mapping[str, Any], edits: Sequence[Mapping[str, Any]]) -> Any:
    """Return the value with a JSON Patch of add, remove and replace applied. Raises NotExact."""
    found: Any = {"": copy.deepcopy(dict(value))}
    for edit in edits:
        try:
            _apply(found, edit)
        except (KeyError, IndexError, ValueError, TypeError):
            raise NotExact("People's edit does not fit what was asked, so it is not done. Ask again.") from None
    return found[""]


def _apply(holder: dict[str, Any], edit: Mapping[str, Any]) -> None:
    *way, last = str(edit["path"]).split("/")
    place: Any = holder
    tokens = [each.replace("~1", "/").replace("~0", "~") for each in (*way, last)]
    for token in tokens[:-1]:
        place = place[int(token)] if isinstance(place, list) else place[token]
    kind, name = edit["op"], tokens[-1]
    if kind not in ("add", "remove", "replace"):
        raise ValueError(kind)
    if isinstance(place, list):
        at = len(place) if name == "-" else int(name)
        if not 0 <= at <= len(place):
            raise IndexError(at)
        place[at : at + (kind != "add")] = [] if kind == "remove" else [edit["value"]]
    elif kind == "remove":
        del place[name]
    else:
        place[name] = edit["value"]
