"""Finds quotes in the name of a person of this installation: whoever writes may call themselves anything.

A text is searched for people, not for speakers: there is no end of the ways to write who says something (a transcript,
a forwarded mail, a chat, a signature), while the people are few. All of a name's words, in whatever order, spelling and
characters that read alike, stand close together in one line; a name of one word stands alone in it, or before a colon.
The database returns the accounts whose last word, or whole name written as one, is among the words of the quotes. It
folds names as `_plain` folds texts; characters that FOLDED leaves out are compared as they are.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from typing import NamedTuple

from django.contrib.auth.models import User

from approvals.cards.quote import Quote
from approvals.gates import thread
from approvals.models import Gate
from approvals.presentation.text import lookalikes
from approvals.presentation.text.unseen_characters import is_hidden
from approvals.presentation.text.untrusted import person
from checkpoints.postgresql.sql import run_sql

BETWEEN = 2  # other words that may stand among those of a name
NEW_LINE = 1000  # places that a new line is away: more than any name has words
_WORD = re.compile(r"[^\W_]+")
FOLDED = (  # characters that names are folded from, the commonest first, as each is looked for in this order
    (0x20, 0x7F), (0x300, 0x346), (0x430, 0x460), (0x400, 0x430), (0x370, 0x400), (0x80, 0x300), (0x346, 0x370),
    (0x460, 0x1200), (0x2000, 0x2070),
)  # fmt: skip
GONE = "\x01"  # in the place of what draws nothing
# OFFSET 0: or each use of what a row computes computes it anew.
_PEOPLE = """
SELECT u.first_name, u.last_name, u.username FROM auth_user u
CROSS JOIN LATERAL (SELECT coalesce(nullif(btrim(u.first_name || ' ' || u.last_name), ''), u.username) AS name) n
CROSS JOIN LATERAL (
  SELECT array_remove(string_to_array(CASE WHEN octet_length(name) = length(name) THEN translate(name, $2, $3)
    ELSE replace(translate(replace(normalize(name, NFKD), '\u00df', 'ss'), $2, $3), $4, '') END, ' '), '') AS words
  OFFSET 0) w
CROSS JOIN LATERAL unnest(ARRAY[words[cardinality(words)], array_to_string(words, ''),
  concat(words[8], words[7], words[6], words[5], words[4], words[3], words[2], words[1])]) AS own(word)
JOIN unnest($1::text[]) AS found(word) ON found.word = own.word
GROUP BY u.id ORDER BY u.id
"""


class _Named(NamedTuple):
    """A person, by the order of accounts, with the words of their name."""

    order: int
    name: str
    words: tuple[str, ...]


class _Words(NamedTuple):
    """The words of a text."""

    places: Mapping[str, Sequence[int]]  # word -> where it stands, rising
    alone: frozenset[str]  # those that stand alone in a line, or before its colon


def namesakes_of(gate: Gate, quotes: Sequence[tuple[Quote, str]]) -> dict[int, str]:
    """Return number of a quote, from 0 -> the name of the first person that it calls its author, or else names.

    Left out is what that person did write in this run, where an agent of this server quotes it.
    """
    if not quotes:
        return {}
    words = [(_words_in(f"{quote.label}\n{quote.role}"), _words_in(text)) for quote, text in quotes]
    people = _people({word for each in words for part in each for word in part.places})
    called: dict[int, str] = {}
    for at, (author, said) in enumerate(words):
        if named := min(_called(author, people), default=None) or min(_called(said, people), default=None):
            called[at] = named.name
    if not called or gate.run.plan.external:
        return called
    written = {(entry.who, _squeezed(entry.text or "")) for entry in thread.of_run(gate)}
    return {at: name for at, name in called.items() if (name, _squeezed(quotes[at][1])) not in written}


def _people(occur: Iterable[str]) -> dict[str, list[_Named]]:
    """Return word -> the people whom it may mean: the last of their name's, or all of them written as one."""
    people: dict[str, list[_Named]] = defaultdict(list)
    names = run_sql(_PEOPLE, [list(occur), *_folding(), GONE])
    for order, (first, last, username) in enumerate(names):
        user = User(first_name=first, last_name=last, username=username)
        named = _Named(order, person(user), _words_of_name(user.get_full_name() or username))
        for word in {*named.words[-1:], "".join(named.words), "".join(reversed(named.words))}:
            people[word].append(named)
    return people


def _called(found: _Words, people: Mapping[str, Sequence[_Named]]) -> Iterator[_Named]:
    for word in found.places:
        for named in people.get(word, ()):
            if word not in named.words or (_close(named.words, found) if len(named.words) > 1 else word in found.alone):
                yield named


def _close(words: Sequence[str], found: _Words) -> bool:
    """Tell whether these words stand close together somewhere. They are looked for beside the rarest of them."""
    places = [found.places.get(word, ()) for word in words]
    reach = len(words) - 1 + BETWEEN
    return any(
        all((at := bisect_left(own, place - reach)) < len(own) and own[at] <= place + reach for own in places)
        for place in min(places, key=len)
    )


def _words_in(text: str) -> _Words:
    places: dict[str, list[int]] = defaultdict(list)
    alone = set()
    at = 0
    for line in _plain(text).splitlines():
        for part in (line, line.partition(":")[0]):
            if len(words := _WORD.findall(part)) == 1:
                alone.update(words)
        for at, word in enumerate(_WORD.findall(line), at + NEW_LINE):  # noqa: B020 - each line goes on from the last
            places[word].append(at)
    return _Words(places, frozenset(alone))


@lru_cache(maxsize=20_000)
def _words_of_name(name: str) -> tuple[str, ...]:
    return tuple(_WORD.findall(_plain(name)))


def _plain(text: str) -> str:
    """Return a text in small letters without accents, look-alikes and what draws nothing; lines stay lines."""
    if not text.isascii():
        text = unicodedata.normalize("NFKD", text)
    return text.translate({ord(char): _plain_char(char) for char in set(text)}).casefold()


def _plain_char(char: str) -> str:
    hidden = is_hidden(char) and not char.isspace()
    return "" if hidden or unicodedata.category(char)[0] == "M" else lookalikes.flat(char)


@cache
def _folding() -> tuple[str, str]:
    """Return what PostgreSQL's `translate` takes to do what `_plain` does; a blank parts words."""
    plain = {char: _plain_char(char).casefold() for low, high in FOLDED for char in map(chr, range(low, high))}
    found = {char: to if not to or _WORD.fullmatch(to) else " " for char, to in plain.items() if len(to) < 2}
    return "".join(found), "".join(to or GONE for to in found.values())


def _squeezed(text: str) -> str:
    return " ".join(text.split())
