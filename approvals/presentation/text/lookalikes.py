"""Finds look-alike characters: in host names, in any word, and in texts that have to be exact. Pure.

Unicode Technical Standard 39 names the attacks, and its table of confusables says what a character reads as. Reported
are: a word that mixes alphabets which have look-alikes; a character of any alphabet that reads as an ASCII letter or
digit, beside real ones; styled letters (mathematical, fullwidth, circled) that read as plain ASCII; and a word all in
one foreign alphabet that reads as a Latin one. Honest prose has such words too (the Russian for ear, the Greek for
and), so they pass beside a word of the same alphabet that nobody would read as Latin.

A name, its domain, the parts of a path and a file's ending are words of their own: "משה@x.org" mixes nothing.

Hosts are checked more strictly: whatever in them is not ASCII is reported. So are amounts and identifiers, but for
what reads as no ASCII character, the spaces and apostrophes that group digits, the dash of a range, and words of one
alphabet with a letter that nobody would read as an ASCII one: a name in Hebrew is no look-alike. Chinese, Japanese and
Korean are written with Latin letters in one word (UTS 39 calls that highly restrictive).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import cache

CONFUSABLE = frozenset({"latin", "cyrillic", "greek", "armenian", "cherokee", "coptic", "lisu", "georgian", "deseret"})
LONGEST = 100  # characters of an identifier
FEWEST = 3  # letters of a word that is checked, so that µm and Ωs are not
GROUPING = frozenset("\u00a0\u202f\u2009\u2019")  # between the digits of an amount
# Endings of files, none of which is a domain's.
ENDINGS = re.compile("avi|csv|docx?|eml|gif|gz|heic|html?|ics|jpe?g|json|log|mp[34]|msg|od[pst]|pdf|png|pptx?|rar|rtf|"
                     "sql|svg|tar|tiff?|tsv|txt|wav|webp|xlsx?|xml|ya?ml", re.IGNORECASE)  # fmt: skip
_LETTERS = re.compile(r"[^\W\d_]+")
_DIGIT_AMONG = re.compile(r"[a-z][01]+[a-z]")
_ORDINALS = "ªº"
_PHONETIC = re.compile("[\u0237\u0250-\u02af\u1d00-\u1dbf]")  # letters of transcriptions, drawn as common ones
_SIGNS = "\u2223\u212e"  # a bar that reads as an l, and the e on packets
_APART = re.compile(r"[@./\\:_ ]")  # parts words
_RANGE = re.compile("(?<=[0-9])\u2013(?=[0-9])")
_EAST_ASIAN = ("hiragana", "katakana", "katakana-hiragana", "hangul", "bopomofo", "ideographic", "halfwidth")
_TOGETHER = dict.fromkeys(_EAST_ASIAN, "cjk")  # written in one word
_STROKES = frozenset("\u4e00\u4e28\u4e36\u4e3f\u3007")  # of Chinese, which read as - | \\ / 0 among Latin letters
_EUROPEAN = 0x17F  # the last letter of European languages, which include the Turkish dotless i


def scripts(word: str) -> set[str]:
    """Return the alphabets of `word`, by the first word of each letter's Unicode name."""
    return {_alphabet(char) for char in word if char.isalpha()}


def _alphabet(char: str) -> str:
    return unicodedata.name(char, "unknown").split()[0].lower()


def in_host(host: str) -> str:
    """Say what is wrong with a host name's letters; "" for nothing."""
    labels = host.split(".")
    if any(label.lower().startswith("xn--") for label in labels):
        return "an encoded name (punycode)"
    for label in labels:
        if not label.isascii() and (wrong := mixed(label) or styled(label)):
            return wrong
    strange = scripts("".join(labels[:-1])) - {"latin"}
    if strange & CONFUSABLE and flat(labels[-1]).isascii():
        return f"written in {min(strange)} letters"
    if any(_DIGIT_AMONG.search(label.lower()) for label in labels):
        return "a digit stands among its letters"
    return next((_not_plain(char) for char in host if not char.isascii()), "")


def in_word(word: str, beside: str = "") -> str:
    """Say what is wrong with the letters of a word that is no host, given its neighbours `beside`; "" for nothing."""
    if word.isascii():
        return ""
    for letters in _LETTERS.findall(word):
        wrong = styled(letters) or (mixed(letters) or latin_alike(letters, beside) if len(letters) >= FEWEST else "")
        if wrong:
            return wrong
    return disguised(word) or digits(word)


def in_exact(text: str) -> str:
    """Name the first character, in a text that has to be exact, that may be read as another; "" for none."""
    words = [] if text.isascii() else _APART.split(_RANGE.sub("-", text))
    return next((_not_plain(char) for word in words for char in _odd_in(word)), "")


def _odd_in(word: str) -> Iterator[str]:
    """Yield the characters of a word that are neither ASCII nor usual, nor at home in the word's only alphabet."""
    used = {_TOGETHER.get(each, each) for each in scripts(word)}
    letters = [char for char in word if char.isalpha()]
    foreign = [char for char in letters if not char.isascii()]
    disguised = any(map(_reads_ascii, foreign)) if "latin" in used else all(map(_reads_ascii, foreign))
    disguised |= "latin" in used and not _STROKES.isdisjoint(word)
    at_home = used if (len(used) == 1 or used == {"latin", "cjk"}) and not disguised else set()
    for char in word:
        own = _TOGETHER.get(_alphabet(char), _alphabet(char)) in at_home and unicodedata.category(char)[0] in "LMP"
        if not (own or char.isascii() or _usual(char)):
            yield char


def _reads_ascii(char: str) -> bool:
    return flat(char).isascii() or unicodedata.normalize("NFKC", char).isascii()


def is_exact(text: str) -> bool:
    """Tell whether a value looks like an identifier: one word with a digit or an @ in it, blanks beside it or none."""
    one = len(text) <= LONGEST and not any(map(str.isspace, text.strip()))
    return one and ("@" in text or any(map(str.isdigit, text)))


def latin_alike(letters: str, beside: str = "") -> str:
    """Say which foreign alphabet's letters read as a Latin word; "" for none, or where a neighbour does not."""
    used = scripts(letters) & CONFUSABLE
    if len(used) != 1 or used == {"latin"} or not (read := flat(letters)).isascii():
        return ""
    neighbours = (char for char in beside if char.isalpha() and scripts(char) == used)
    if any(not flat(char).isascii() for char in neighbours):
        return ""
    return f"{min(used)} letters that read “{read}”"


def digits(word: str) -> str:
    """Name a digit that is not ASCII beside ASCII characters; "" for none."""
    odd = [char for char in word if char.isdecimal() and not char.isascii()]
    return _not_plain(odd[0]) if odd and any(char.isascii() and char.isalnum() for char in word) else ""


def disguised(word: str) -> str:
    """Name a character that only reads as an ASCII one in a word with ASCII letters; "" for none."""
    if not any(char.isascii() and char.isalpha() for char in word):
        return ""
    foreign = [char for part in _APART.split(word) for char in _foreign_in(part)]
    odd = [char for char in foreign if ord(char) > _EUROPEAN and _reads_as_letter(char)]
    return f"only looks like ASCII: {_named(odd[0])}" if odd else ""


def _foreign_in(part: str) -> str:
    """Return a part of a word, if it has ASCII letters too or reads as nothing else; "" else."""
    letters = [char for char in part if char.isalpha()]
    return part if any(map(str.isascii, letters)) or all(map(_reads_as_letter, letters)) else ""


def _reads_as_letter(char: str) -> bool:
    """Tell whether a letter, a digit or one of two signs reads as an ASCII letter or digit; operators do not count."""
    return char in _SIGNS or (_table().get(char, "").isalnum() and unicodedata.category(char)[0] in "LN")


def flat(text: str) -> str:
    """Return a text with each look-alike character replaced by the ASCII one that it reads as."""
    return text if text.isascii() else "".join(map(_read_as, text))


@cache
def _table() -> dict[str, str]:
    """Return foreign character -> the ASCII character that it reads as, from Unicode's table."""
    from confusable_homoglyphs import confusables  # noqa: PLC0415 - reads half a megabyte, which workers do without

    found: dict[str, str] = {}
    for char, alike in confusables.confusables_data.items():
        plain = next((each["c"] for each in alike if each["c"].isascii() and len(each["c"]) == 1), "")
        if plain and not char.isascii():
            found[char] = plain
    return found


def _read_as(char: str) -> str:
    if char.isascii():
        return char
    plain = unicodedata.normalize("NFKC", char)
    return plain if len(plain) == 1 and plain.isascii() else _table().get(char, char)


def _usual(char: str) -> bool:
    kind = unicodedata.category(char)
    return char in GROUPING or kind == "Sc" or ((kind[0] in "PS" or kind == "No") and not flat(char).isascii())


def _named(char: str) -> str:
    name = unicodedata.name(char, "unknown").lower()
    return f"U+{ord(char):04X} is {name}"


def _not_plain(char: str) -> str:
    return f"not plain ASCII: {_named(char)}"


def mixed(word: str) -> str:
    """Name a letter that is mixed with Latin letters which it looks like; "" for none."""
    used = scripts(word) & CONFUSABLE
    if "latin" in used and len(used) > 1:
        odd = next(char for char in word if scripts(char) & CONFUSABLE - {"latin"})
        return f"mixes alphabets: {_named(odd)}"
    found = _PHONETIC.search(word)
    if found and any(char.isascii() for char in word):
        return f"a letter of transcriptions: {_named(found[0])}"
    return ""


def styled(word: str) -> str:
    """Name the first styled letter that reads as plain ASCII, as in a bold or circled alphabet; "" for none."""
    odd = [char for char in word if not char.isascii() and char not in _ORDINALS and _reads_plain(char)]
    return f"styled letters, {_named(odd[0])}" if odd else ""


def _reads_plain(char: str) -> bool:
    plain = unicodedata.normalize("NFKC", char)
    return len(plain) == 1 and plain.isascii() and plain.isalnum()
