"""Fits titles of actions into sentences: "Send an e-mail" becomes "sends an e-mail" and "an e-mail was sent". Pure.

Titles are written by agents, in any language. Only those that begin with a verb of this list are taken apart; any other
is quoted as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

IRREGULAR = {
    "buy": "bought", "choose": "chosen", "give": "given", "hold": "held", "make": "made", "pay": "paid", "put": "put",
    "run": "run", "sell": "sold", "send": "sent", "set": "set", "take": "taken", "tell": "told",
    "withdraw": "withdrawn", "write": "written",
}  # fmt: skip
REGULAR = (
    "add", "archive", "assign", "award", "block", "book", "call", "cancel", "change", "charge", "close", "create",
    "credit", "delete", "deploy", "disable", "dispatch", "email", "enable", "fetch", "file", "grant", "install",
    "invite", "invoice", "issue", "lock", "mail", "merge", "move", "notify", "open", "order", "place", "post",
    "publish", "raise", "refund", "release", "remove", "rename", "replace", "reply", "reprice", "reset", "restart",
    "revoke", "schedule", "ship", "start", "submit", "transfer", "unlock", "update", "upload", "wire",
)  # fmt: skip
DOUBLING = ("ship", "submit", "transfer")  # transferred
CHANGING = ("change", "raise", "reprice", "reset", "set", "update")  # to an amount; any other is done with one
DETERMINERS = ("a", "an", "the", "this", "one", "all", "every", "each")


class Verb(NamedTuple):
    """A verb in the forms that a sentence needs: send, sends, sent."""

    base: str
    third: str
    past: str


DO = Verb("do", "does", "done")


def phrase(titles: Sequence[str]) -> tuple[Verb, str]:
    """Return (what is done, to what), by the first title that can be taken apart: (send, "an e-mail").

    Where none can, the verb is "do", and the object is the first title, quoted.
    """
    for title in titles:
        first, _, rest = title.strip().partition(" ")
        verb = VERBS.get(first.lower())
        if verb is not None and rest.split(" ")[0].lower() in DETERMINERS:
            return verb, rest
    return DO, f"“{''.join(titles[:1]).strip()}”"


def third(title: str) -> str:
    """Return `sends an e-mail`; a title that is not taken apart comes in quotation marks."""
    verb, _, rest = title.strip().partition(" ")
    known = VERBS.get(verb.lower())
    return " ".join(filter(None, [known.third, rest])) if known else f"“{title.strip()}”"


def with_amounts(words: str, amounts: Sequence[str]) -> str:
    """Return `pays a refund €5.25`, or `changes a price to €13.09`, of words that begin with a verb."""
    first = words.partition(" ")[0].lower()
    to = any(first in (base, VERBS[base].third) for base in CHANGING)
    return " ".join([words, *(["to"] if to and amounts else []), *amounts])


def _third(base: str) -> str:
    if base.endswith(("s", "sh", "ch", "x", "z")):
        return base + "es"
    return base[:-1] + "ies" if base.endswith("y") and base[-2] not in "aeiou" else base + "s"


def _past(base: str) -> str:
    if base in IRREGULAR:
        return IRREGULAR[base]
    if base.endswith("e"):
        return base + "d"
    if base.endswith("y") and base[-2] not in "aeiou":
        return base[:-1] + "ied"
    return base + (base[-1] if base in DOUBLING else "") + "ed"


VERBS = {base: Verb(base, _third(base), _past(base)) for base in (*IRREGULAR, *REGULAR)}
