"""Finds quotes in the name of a person of this installation: whoever writes may call themselves anything."""

from __future__ import annotations

import re
from collections.abc import Sequence

from django.contrib.auth.models import User
from django.db.models import F, Q, Value

from approvals.cards.quote import Quote
from approvals.gates import thread
from approvals.models import Gate
from approvals.presentation.text import lookalikes
from approvals.presentation.text.untrusted import person

MOST = 200  # people whose names may be meant
SPEAKER = re.compile(r"^[ \t]{0,8}([^:\n]{2,80}):", re.MULTILINE)  # at the beginning of a line, as in a transcript
SPEAKERS = 20  # of one text


def namesakes_of(gate: Gate, quotes: Sequence[tuple[Quote, str]]) -> dict[int, str]:
    """Return number of a quote, from 0 -> the name of the person that its author is called as.

    Left out is what that person did write in this run, where an agent of this server quotes it.
    """
    if not quotes:
        return {}
    authors = [[quote.label, quote.role, *SPEAKER.findall(text)[:SPEAKERS]] for quote, text in quotes]
    people = _people_named([name for names in authors for name in names])
    called = {at: name for at, names in enumerate(authors) if (name := _first_called(names, people))}
    if not called or gate.run.plan.external:
        return called
    written = {(entry.who, _squeezed(entry.text or "")) for entry in thread.of_run(gate)}
    return {at: name for at, name in called.items() if (name, _squeezed(quotes[at][1])) not in written}


def _people_named(authors: Sequence[str]) -> list[str]:
    """List the names of people that may be meant, as pages show them."""
    text = " ".join(authors)
    named = Q(meant__icontains=F("last_name")) & ~Q(last_name="")
    named |= Q(meant__icontains=F("first_name")) & ~Q(first_name="")
    named |= Q(meant__icontains=F("username")) & Q(first_name="", last_name="")
    users = User.objects.annotate(meant=Value(f"{text} {lookalikes.flat(text)}")).filter(named)
    return [person(user) for user in users.order_by("pk")[:MOST]]


def _first_called(authors: Sequence[str], people: Sequence[str]) -> str:
    """Return the first of these people that one of the authors is called as; "" for nobody."""
    for words in map(_words, authors):
        for name in people:
            own = _words(name)
            if own == words or (len(own) > 1 and own <= words):
                return name
    return ""


def _words(name: str) -> frozenset[str]:
    return frozenset(re.findall(r"[^\W_]+", lookalikes.flat(name).casefold()))


def _squeezed(text: str) -> str:
    return " ".join(text.split())
