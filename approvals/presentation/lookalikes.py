"""Letters that only look like others: in host names, and in any word. Pure.

Unicode Technical Standard 39 names the attacks. A word that mixes alphabets which have look-alikes is named, and so
are letters that are drawn as styled ones (mathematical, fullwidth, circled) and read as plain ASCII.
"""

from __future__ import annotations

import re
import unicodedata

CONFUSABLE = frozenset({"latin", "cyrillic", "greek", "armenian", "cherokee", "coptic", "lisu", "georgian", "deseret"})
FEWEST = 3  # letters of a word that is looked at: µm and Ωs are none
_LETTERS = re.compile(r"[^\W\d_]+")
_DIGIT_AMONG = re.compile(r"[a-z][01]+[a-z]")
_ORDINALS = "ªº"
_PHONETIC = re.compile("[\u0237\u0250-\u02af\u1d00-\u1dbf]")  # letters of transcriptions, drawn as common ones


def scripts(word: str) -> set[str]:
    """The alphabets that `word` is written in, by the first word of each letter's name."""
    return {unicodedata.name(char, "unknown").split()[0].lower() for char in word if char.isalpha()}


def in_host(host: str) -> str:
    """What is wrong with a host name's letters; empty where nothing is."""
    labels = host.split(".")
    if any(label.lower().startswith("xn--") for label in labels):
        return "an encoded name (punycode)"
    for label in labels:
        if not label.isascii() and (wrong := mixed(label) or styled(label)):
            return wrong
    strange = scripts("".join(labels[:-1])) - {"latin"}
    if strange & CONFUSABLE and labels[-1].isascii():
        return f"written in {min(strange)} letters"
    if any(_DIGIT_AMONG.search(label.lower()) for label in labels):
        return "a digit stands among its letters"
    return ""


def in_word(word: str) -> str:
    """What is wrong with the letters of a word that is no host; empty where nothing is."""
    if word.isascii():
        return ""
    for letters in _LETTERS.findall(word):
        wrong = styled(letters) or (mixed(letters) if len(letters) >= FEWEST else "")
        if wrong:
            return wrong
    return ""


def mixed(word: str) -> str:
    """Whether Latin letters and such that look like them stand in one word."""
    used = scripts(word) & CONFUSABLE
    if "latin" in used and len(used) > 1:
        odd = next(char for char in word if scripts(char) & CONFUSABLE - {"latin"})
        return f"mixes alphabets: U+{ord(odd):04X} is {unicodedata.name(odd, 'unknown').lower()}"
    found = _PHONETIC.search(word)
    if found and any(char.isascii() for char in word):
        return f"a letter of transcriptions: U+{ord(found[0]):04X} is {unicodedata.name(found[0], 'unknown').lower()}"
    return ""


def styled(word: str) -> str:
    """Whether letters are drawn as styled ones that read as plain ASCII, as in a bold or circled alphabet."""
    odd = [char for char in word if not char.isascii() and char not in _ORDINALS and _reads_plain(char)]
    if not odd:
        return ""
    return f"styled letters, U+{ord(odd[0]):04X} is {unicodedata.name(odd[0], 'unknown').lower()}"


def _reads_plain(char: str) -> bool:
    plain = unicodedata.normalize("NFKC", char)
    return len(plain) == 1 and plain.isascii() and plain.isalnum()
