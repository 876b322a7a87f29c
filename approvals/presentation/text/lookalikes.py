"""Characters that only look like others: in host names, in any word, and in what has to be exact. Pure.

Unicode Technical Standard 39 names the attacks, and its table of confusables says what a character reads as. A word
that mixes alphabets which have look-alikes is named, and one with a character of any alphabet that reads as an ASCII
letter or digit beside such; so are letters that are drawn as styled ones (mathematical, fullwidth,
circled) and read as plain ASCII, and a word all in one foreign alphabet that reads as a Latin one. There are
such words in honest prose too (the Russian for ear, the Greek for and): beside a word of the same alphabet that nobody
would read as Latin they are left alone.

A host, an amount and an identifier are held to more: whatever in them is not ASCII is named, but for signs of
currencies and the spaces and apostrophes that group digits.
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache

from django.utils.translation import gettext as _

CONFUSABLE = frozenset({"latin", "cyrillic", "greek", "armenian", "cherokee", "coptic", "lisu", "georgian", "deseret"})
LONGEST = 100  # characters of an identifier
FEWEST = 3  # letters of a word that is looked at: µm and Ωs are none
GROUPING = frozenset("\u00a0\u202f\u2009\u2019")  # between the digits of an amount
_LETTERS = re.compile(r"[^\W\d_]+")
_DIGIT_AMONG = re.compile(r"[a-z][01]+[a-z]")
_ORDINALS = "ªº"
_PHONETIC = re.compile("[\u0237\u0250-\u02af\u1d00-\u1dbf]")  # letters of transcriptions, drawn as common ones
_SIGNS = "\u2223\u212e"  # a bar that reads as an l, and the e on packets
_EUROPEAN = 0x17F  # the last of the letters of European languages, a Turkish i without a dot among them


def scripts(word: str) -> set[str]:
    """Return the alphabets that `word` is written in, by the first word of each letter's name."""
    return {unicodedata.name(char, "unknown").split()[0].lower() for char in word if char.isalpha()}


def in_host(host: str) -> str:
    """Say what is wrong with a host name's letters; "" where nothing is."""
    labels = host.split(".")
    if any(label.lower().startswith("xn--") for label in labels):
        return _("an encoded name (punycode)")
    for label in labels:
        if not label.isascii() and (wrong := mixed(label) or styled(label)):
            return wrong
    strange = scripts("".join(labels[:-1])) - {"latin"}
    if strange & CONFUSABLE and flat(labels[-1]).isascii():
        return _("written in %(alphabet)s letters") % {"alphabet": min(strange)}
    if any(_DIGIT_AMONG.search(label.lower()) for label in labels):
        return _("a digit stands among its letters")
    return in_exact(host)


def in_word(word: str, beside: str = "") -> str:
    """Say what is wrong with the letters of a word that is no host, `beside` its neighbours; "" where nothing is."""
    if word.isascii():
        return ""
    for letters in _LETTERS.findall(word):
        wrong = styled(letters) or (mixed(letters) or latin_alike(letters, beside) if len(letters) >= FEWEST else "")
        if wrong:
            return wrong
    return disguised(word) or digits(word)


def in_exact(text: str) -> str:
    """Name the first character that is not ASCII in what has to be exact, by its code point; "" where there is none."""
    odd = [] if text.isascii() else [char for char in text if not (char.isascii() or _usual(char))]
    return _not_plain(odd[0]) if odd else ""


def is_exact(text: str) -> bool:
    """Tell whether a value looks like an identifier: one word with a digit or an @ in it."""
    return len(text) <= LONGEST and not any(map(str.isspace, text)) and ("@" in text or any(map(str.isdigit, text)))


def latin_alike(letters: str, beside: str = "") -> str:
    """Say which foreign alphabet's letters read as a Latin word; "" where none do, or a neighbour does not."""
    used = scripts(letters) & CONFUSABLE
    if len(used) != 1 or used == {"latin"} or not (read := flat(letters)).isascii():
        return ""
    neighbours = (char for char in beside if char.isalpha() and scripts(char) == used)
    if any(not flat(char).isascii() for char in neighbours):
        return ""
    return _("%(alphabet)s letters that read “%(word)s”") % {"alphabet": min(used), "word": read}


def digits(word: str) -> str:
    """Say which digit is not ASCII beside characters that are; "" where none is."""
    odd = [char for char in word if char.isdecimal() and not char.isascii()]
    return _not_plain(odd[0]) if odd and any(char.isascii() and char.isalnum() for char in word) else ""


def disguised(word: str) -> str:
    """Say which character only reads as an ASCII one in a word with ASCII letters; "" where none does."""
    if not any(char.isascii() and char.isalpha() for char in word):
        return ""
    odd = [char for char in word if ord(char) > _EUROPEAN and _reads_as_letter(char)]
    return _("only looks like ASCII: %(character)s") % {"character": _named(odd[0])} if odd else ""


def _reads_as_letter(char: str) -> bool:
    """Tell whether a letter, a digit or one of two signs reads as an ASCII letter or digit; operators do not count."""
    return char in _SIGNS or (_table().get(char, "").isalnum() and unicodedata.category(char)[0] in "LN")


def flat(text: str) -> str:
    """Return what a text reads as, character for character: a plain ASCII one for each that only looks like it."""
    return text if text.isascii() else "".join(map(_read_as, text))


@cache
def _table() -> dict[str, str]:
    """Return what each foreign character reads as, of those that read as one of ASCII: from Unicode's table."""
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
    return char in GROUPING or unicodedata.category(char) == "Sc"


def _named(char: str) -> str:
    name = unicodedata.name(char, "unknown").lower()
    return _("%(point)s is %(name)s") % {"point": f"U+{ord(char):04X}", "name": name}


def _not_plain(char: str) -> str:
    return _("not plain ASCII: %(character)s") % {"character": _named(char)}


def mixed(word: str) -> str:
    """Say which letter is mixed with Latin ones that it looks like in one word; "" where none is."""
    used = scripts(word) & CONFUSABLE
    if "latin" in used and len(used) > 1:
        odd = next(char for char in word if scripts(char) & CONFUSABLE - {"latin"})
        return _("mixes alphabets: %(character)s") % {"character": _named(odd)}
    found = _PHONETIC.search(word)
    if found and any(char.isascii() for char in word):
        return _("a letter of transcriptions: %(character)s") % {"character": _named(found[0])}
    return ""


def styled(word: str) -> str:
    """Name the first styled letter that reads as plain ASCII, as in a bold or circled alphabet; "" where none is."""
    odd = [char for char in word if not char.isascii() and char not in _ORDINALS and _reads_plain(char)]
    return _("styled letters, %(character)s") % {"character": _named(odd[0])} if odd else ""


def _reads_plain(char: str) -> bool:
    plain = unicodedata.normalize("NFKC", char)
    return len(plain) == 1 and plain.isascii() and plain.isalnum()
