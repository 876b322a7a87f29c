"""Finds quotes in the name of a person of this installation: whoever writes may call themselves anything.

A text is searched for people, not for speakers: there is no end of the ways to write who says something (a transcript,
a forwarded mail, a chat, a signature), while the people are few. All of a name's words, in whatever order, spelling and
characters that read alike, stand close together in one line; a name of one word stands alone in it, or before a colon.
User names count as names do, and so does an address. The database returns the accounts whose last word, or whole name
written as one, is among the words of the quotes. It folds names as `_plain` folds texts; characters that FOLDED leaves
out are compared as they are. Some letters read as a Latin one in capitals alone (the Greek nu), some in small letters
alone, so texts and names are folded from both.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from itertools import zip_longest
from typing import NamedTuple

from django.contrib.auth.models import User
from holdpoint.unseen_characters import is_hidden

from approvals.cards.quote import Quote
from approvals.gates import thread
from approvals.models import Gate
from approvals.presentation.text import lookalikes
from approvals.presentation.text.untrusted import person
from checkpoints.postgresql.sql import run_sql

BETWEEN = 2  # other words that may stand among those of a name
NEW_LINE = 1000  # places that a new line is away: more than any name has words
_WORD = re.compile(r"[^\W_]+")
_ADDRESS = re.compile(r"(?<![\w.+-])[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,9}")
_SMALL_CAPITAL = "LATIN LETTER SMALL CAPITAL "
_DIGITS = {"0": "o", "1": "l"}  # that read as letters
FOLDED = (  # characters that names are folded from, the commonest first, as each is looked for in this order
    (0x20, 0x7F), (0x300, 0x346), (0x430, 0x460), (0x400, 0x430), (0x370, 0x400), (0x80, 0x300), (0x346, 0x370),
    (0x460, 0x1200), (0x2000, 0x2070),
)  # fmt: skip
GONE = "\x01"  # in the place of what draws nothing
# OFFSET 0: or each use of what a row computes computes it anew.
_PEOPLE = """
SELECT u.first_name, u.last_name, u.username, u.email FROM auth_user u
CROSS JOIN LATERAL (VALUES (btrim(u.first_name || ' ' || u.last_name)), (u.username)) n(name)
CROSS JOIN LATERAL (
  SELECT translate(lower(name COLLATE "C"), $2, $3) AS folded WHERE octet_length(name) = length(name)
  UNION ALL
  SELECT replace(translate(replace(normalize(name, NFKD), '\u00df', 'ss'), these, those), $8, '')
  FROM (VALUES ($4::text, $5::text), ($6, $7)) AS folding(these, those) WHERE octet_length(name) > length(name)) f
CROSS JOIN LATERAL (SELECT array_remove(string_to_array(folded, ' '), '') AS words OFFSET 0) w
CROSS JOIN LATERAL unnest(ARRAY[words[cardinality(words)], array_to_string(words, ''),
  concat(words[8], words[7], words[6], words[5], words[4], words[3], words[2], words[1]),
  translate(lower(u.email COLLATE "C"), '01', 'ol')]) AS own(word)
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

    places: Mapping[str, Sequence[int]]  # word or address -> where it stands, rising
    alone: frozenset[str]  # those that stand alone in a line, or before its colon


def namesakes_of(gate: Gate, quotes: Sequence[tuple[Quote, str]]) -> dict[int, str]:
    """Return number of a quote, from 0 -> the name of the first person that it calls its author, or else names.

    Left out is what that person did write in this run, where an agent of this server quotes it.
    """
    words = [(_words_in(_author(quote)), _words_in(text)) for quote, text in quotes]
    people = _people({word for each in words for part in each for word in part.places})
    called: dict[int, str] = {}
    for at, (author, said) in enumerate(words):
        if named := min(_called(author, people), default=None) or min(_called(said, people), default=None):
            called[at] = named.name
    if not called or gate.run.plan.external:
        return called
    written = {(entry.who, _squeezed(entry.text or "")) for entry in thread.of_run(gate)}
    return {at: name for at, name in called.items() if (name, _squeezed(quotes[at][1])) not in written}


def _author(quote: Quote) -> str:
    """Return the label and the role of a quote as they are drawn: each on one line, and beside each other."""
    label, role = (" ".join(words.split()) for words in (quote.label, quote.role))
    return f"{label}\n{role}\n{label} {role}"


def _people(occur: Iterable[str]) -> dict[str, list[_Named]]:
    """Return word -> the people whom it may mean: their address, the last of a name, or all of it written as one."""
    people: dict[str, list[_Named]] = defaultdict(list)
    names = run_sql(_PEOPLE, [list(occur), *_folding(), GONE])
    for order, (first, last, username, email) in enumerate(names):
        user = User(first_name=first, last_name=last, username=username)
        people[_plain(email)].append(_Named(order, person(user), ()))
        for words in {words for name in (user.get_full_name(), username) for words in _words_of_name(name)}:
            named = _Named(order, person(user), words)
            for word in {*words[-1:], "".join(words), "".join(reversed(words))}:
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
    foldings = [_plain(text).splitlines(), [] if text.isascii() else _plain(text, capitals=True).splitlines()]
    for lines in zip_longest(*foldings, fillvalue=""):
        for line in lines:
            for part in (line, line.partition(":")[0]):
                if len(words := _WORD.findall(part)) == 1:
                    alone.update(words)
        start = at + NEW_LINE
        for address in _ADDRESS.findall(lines[0]) if "@" in lines[0] else ():
            places[address].append(start)
        for at, folded in enumerate(zip_longest(*map(_WORD.findall, lines), fillvalue=""), start):
            for word in filter(None, set(folded)):
                places[word].append(at)
    return _Words(places, frozenset(alone))


@lru_cache(maxsize=20_000)
def _words_of_name(name: str) -> set[tuple[str, ...]]:
    return {words for capitals in (False, True) if (words := tuple(_WORD.findall(_plain(name, capitals=capitals))))}


def _plain(text: str, *, capitals: bool = False) -> str:
    """Return a text in small letters without accents, look-alikes and what draws nothing; lines stay lines.

    `capitals`: by what its letters read as in capitals.
    """
    if not text.isascii():
        text = unicodedata.normalize("NFKD", text)
    return text.translate({ord(char): _plain_char(char, capitals) for char in set(text)})


def _plain_char(char: str, capitals: bool) -> str:
    if (is_hidden(char) and not char.isspace()) or unicodedata.category(char)[0] == "M":
        return ""
    name = unicodedata.name(char, "")
    if name[:-1] == _SMALL_CAPITAL:
        return name[-1].lower()
    plain = lookalikes.flat(char.upper() if capitals else char.casefold()).casefold()
    return _DIGITS.get(plain, plain)


@cache
def _folding() -> list[str]:
    """Return what PostgreSQL's `translate` takes to do what `_plain` does: to small ASCII letters, and to others twice.

    A blank parts words.
    """
    maps = [{char: _plain_char(char, False) for char in map(chr, range(0x20, 0x7F)) if not char.isalpha()}]
    for capitals in (False, True):
        maps += [{char: _plain_char(char, capitals) for low, high in FOLDED for char in map(chr, range(low, high))}]
    parts = []
    for plain in maps:
        found = {char: to if not to or _WORD.fullmatch(to) else " " for char, to in plain.items() if len(to) < 2}
        parts += ["".join(found), "".join(to or GONE for to in found.values())]
    return parts


def _squeezed(text: str) -> str:
    return " ".join(text.split())
