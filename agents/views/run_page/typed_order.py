"""Reads the forms of the run's page: the checkpoint, the input, and the impact that was on the screen."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field

from django.http import HttpRequest

from agents.presentation.editors import PREFIX
from approvals.forms import names
from checkpoints.postgresql.sql import make_storable

LONGEST = 2_000  # characters of a reason


@dataclass(frozen=True, slots=True)
class TypedOrder:
    """One order, given or only previewed. `at` is its checkpoint, `to` the one that a rewind goes to.

    `seen` is the hex digest of the impact that was shown; `texts` holds the input in the form of the state,
    by the names of its inputs; `sent_digest` is the digest of all that was sent.
    """

    kind: str
    at: int
    to: int = 0
    why: str = ""
    seen: str = ""
    confirm: bool = False
    texts: dict[str, str] = field(default_factory=dict)
    title: str = ""
    version: str = ""
    config: str | None = None
    key: str = ""
    sent_digest: str = ""

    @property
    def once(self) -> str:
        """Return the key under which an order counts once; changed and sent again, as after Back, it is a new order."""
        return f"{self.key}.{self.sent_digest}" if self.key else ""


def order_of(request: HttpRequest, kind: str) -> TypedOrder:
    """Return the order in the form. Anything that is not a number reads as 0, which no checkpoint has."""
    sent = request.POST
    to = parse_number(sent.get("to", ""))
    return TypedOrder(
        kind=kind,
        at=parse_number(sent.get("at", "")) or to,
        to=to,
        why=sent.get("why", "").strip()[:LONGEST],
        seen=sent.get(f"seen.{to}", "") or sent.get("seen", ""),
        confirm=f"confirm.{to}" in sent,
        texts={name: str(text) for name, text in sent.items() if names.split(name)[0] == PREFIX},
        title=make_storable(sent.get("title", "").strip()[:200]),
        version=make_storable(sent.get("version", "").strip()),
        config=sent.get("config"),
        key=make_storable(sent.get("key", "")[:100]),
        sent_digest=_digest(request),
    )


def _digest(request: HttpRequest) -> str:
    lines = sorted((name, values) for name, values in request.POST.lists() if name != "csrfmiddlewaretoken")
    return hashlib.sha256(repr([request.path, lines]).encode(errors="surrogatepass")).hexdigest()


def parse_number(text: str) -> int:
    """Parse a number in an address or a form; 0 for anything else."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0
