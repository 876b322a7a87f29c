"""Fits titles of actions into sentences: "Send an e-mail" becomes "sends an e-mail" and "an e-mail was sent". Pure.

Titles are written by agents, in any language. Only those that begin with a verb of this list are taken apart; any other
is quoted as it is.

It also writes sentences about effects that would be repeated: "An e-mail was already sent at 16:18". Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from approvals.impact.result import Repeat

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


def told(repeat: Repeat, *, at: str, here: int, doing: str = "Approving") -> str:
    """Write two sentences: what was done (see `done`), and that it is done again. `doing` is the second's subject."""
    verb = phrase(repeat.titles)[0]
    if not repeat.done:
        said = f"{doing} could {verb.base} it twice."
    elif repeat.certain:
        said = f"{doing} {verb.third} it again."
    else:
        said = f"{doing} may {verb.base} it again."
    return f"{done(repeat, at=at, here=here)}. {said}"


def done(repeat: Repeat, *, at: str, here: int) -> str:
    """Say what was done, without a full stop. `at`: the time in words; `here`: the run that is decided about."""
    verb, what = phrase(repeat.titles)
    where = " ".join(filter(None, [at, _where(repeat, here)]))
    said = f"{what} was already {verb.past} {where}".rstrip()
    if not repeat.done:
        said = f"Nobody knows whether {said}"
    return f"{said[:1].upper()}{said[1:]}"


def again(repeat: Repeat) -> str:
    """Word the box that confirms a repeat: `Send it again`."""
    return f"{phrase(repeat.titles)[0].base.capitalize()} it again"


def _where(repeat: Repeat, here: int) -> str:
    run = f"R-{repeat.run}" if repeat.run != here else ""
    place = f"checkpoint {repeat.checkpoint}" if repeat.checkpoint else ""
    found = ", ".join(filter(None, [run, place]))
    return f"({found})" if found else ""
