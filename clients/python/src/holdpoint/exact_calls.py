"""Compares what people approved with what is about to be done: it is done with these arguments or not at all. Pure."""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

from . import json_pointer
from .answers import Gate
from .errors import Altered, NotJson

VALUE = b"holdpoint value\n"  # the server's digests of values begin with it


def encode_canonical(value: Any) -> bytes:
    """Return the canonical JSON of a value, in which 1, 1.0 and true differ. Raises NotJson."""
    try:
        text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
        return text.encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise NotJson(f"These arguments are not JSON: {error}.") from None


def digest_values(*values: Any) -> str:
    """Return SHA-256 over the canonical JSON of the values, in hex. Raises NotJson."""
    return hashlib.sha256(encode_canonical(values)).hexdigest()


def approved_arguments(
    gate: Gate,
    action: str,
    given: Mapping[str, Any],
    *,
    asked: Mapping[str, Any] | None = None,
    edits: Sequence[Mapping[str, Any]] = (),
) -> dict[str, Any]:
    """Return the arguments `given` for an action of a decided gate, where people approved exactly these.

    The card must have the digest that people decided on, and the arguments must be the card's. `asked`: what the
    program asks about, which with people's `edits` must be the same; None where it asked in another process. Secrets
    that the server masks are compared with nothing. Raises Altered.
    """
    number = next(
        (at for at, card_action in enumerate(gate.card.get("actions", [])) if card_action["id"] == action), None
    )
    place = f"/actions/{number}/arguments"
    hidden = [
        pointer.removeprefix(place) for pointer in gate.masked if pointer == place or pointer.startswith(f"{place}/")
    ]
    card = VALUE + encode_canonical(gate.card)
    # Digests are of the true values, so that of a card with masked ones cannot be computed.
    known = bool(gate.masked) or hashlib.sha256(card).hexdigest() == gate.digest
    seen = gate.outcome is not None and gate.outcome.seen == gate.digest != ""
    got = _without(given, hidden)
    if not known or not seen or number is None or got != _without(gate.card["actions"][number]["arguments"], hidden):
        raise Altered(
            f"The arguments of {action} are not those that people approved at gate {gate.id}, so it was not done. Ask "
            "again, and tell the people who run Holdpoint."
        )
    if asked is not None and got != _without(edited(asked, edits), hidden):
        raise Altered(
            f"People were asked at gate {gate.id} about other arguments of {action} than these, so it was not done. "
            "Ask again, under another key."
        )
    return dict(given)


def edited(value: Mapping[str, Any], edits: Sequence[Mapping[str, Any]]) -> Any:
    """Return the value with a JSON Patch of add, remove and replace applied. Raises Altered."""
    whole: Any = {"": copy.deepcopy(dict(value))}
    for edit in edits:
        try:
            _apply(whole, edit)
        except (KeyError, IndexError, ValueError, TypeError):
            raise Altered("People's edit does not fit what was asked, so it is not done. Ask again.") from None
    return whole[""]


def _without(value: Any, places: Sequence[str]) -> bytes:
    """Return the canonical JSON of a value without what is at some places."""
    for place in places:
        if json_pointer.get(value, place) is not json_pointer.MISSING:
            value = json_pointer.replaced(value, place, None)
    return encode_canonical(value)


def _apply(holder: dict[str, Any], edit: Mapping[str, Any]) -> None:
    place: Any = holder
    *way, name = ["", *json_pointer.parts_of(str(edit["path"]))]
    for token in way:
        place = place[int(token)] if isinstance(place, list) else place[token]
    kind = edit["op"]
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
