"""Tells what of a text a reader does not see, or sees on and over its neighbours. Pure.

The server's pages and the client's terminal read this one module, so that one marks what the other does.
UAX 9 names what turns a text around. Emoji are written with characters that draw nothing: only the sequences that UTS
51 lists are ordinary, so the bases and pictures below are those of Unicode 17 (emoji-variation-sequences.txt, and
Extended_Pictographic of emoji-data.txt). A space other than the plain one parts words that a shell or a bank takes for
one, so it is marked too, but for where prose has it.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

DRAW_NOTHING = frozenset(
    "\u00ad\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180e\u180f\u2800\u3164\uffa0\ufffc\U00016fe4\U0001d159"
)
KEYCAP = "\u20e3"
OVERLAY = 1  # the combining class of marks that are laid over a character
PILE = 3  # more marks on one character cover the lines around it
PLAIN = re.compile(r"[\n\t -~]+")  # harmless characters, which are most of most texts
TAGS = re.compile("[\U000e0000-\U000e007f]+")


def _characters(points: str) -> str:
    """Return code points and their ranges as the inside of a pattern's class."""
    return "".join("-".join(chr(int(point, 16)) for point in part.split("-")) for part in points.split())


# Characters that have a style as emoji, which U+FE0F asks for.
_STYLED = _characters(
    "a9 ae 203c 2049 2122 2139 2194-2199 21a9-21aa 231a-231b 2328 23cf 23e9-23f3 23f8-23fa 24c2 25aa-25ab 25b6 25c0 "
    "25fb-25fe 2600-2604 260e 2611 2614-2615 2618 261d 2620 2622-2623 2626 262a 262e-262f 2638-263a 2640 2642 "
    "2648-2653 265f-2660 2663 2665-2666 2668 267b 267e-267f 2692-2697 2699 269b-269c 26a0-26a1 26a7 26aa-26ab "
    "26b0-26b1 26bd-26be 26c4-26c5 26c8 26ce-26cf 26d1 26d3-26d4 26e9-26ea 26f0-26f5 26f7-26fa 26fd 2702 2705 "
    "2708-270d 270f 2712 2714 2716 271d 2721 2728 2733-2734 2744 2747 274c 274e 2753-2755 2757 2763-2764 2795-2797 "
    "27a1 27b0 27bf 2934-2935 2b05-2b07 2b1b-2b1c 2b50 2b55 3030 303d 3297 3299 1f004 1f170-1f171 1f17e-1f17f 1f202 "
    "1f21a 1f22f 1f237 1f30d-1f30f 1f315 1f31c 1f321 1f324-1f32c 1f336 1f378 1f37d 1f393 1f396-1f397 1f399-1f39b "
    "1f39e-1f39f 1f3a7 1f3ac-1f3ae 1f3c2 1f3c4 1f3c6 1f3ca-1f3ce 1f3d4-1f3e0 1f3ed 1f3f3 1f3f5 1f3f7 1f408 1f415 "
    "1f41f 1f426 1f43f 1f441-1f442 1f446-1f449 1f44d-1f44e 1f453 1f46a 1f47d 1f4a3 1f4b0 1f4b3 1f4bb 1f4bf 1f4cb "
    "1f4da 1f4df 1f4e4-1f4e6 1f4ea-1f4ed 1f4f7 1f4f9-1f4fb 1f4fd 1f508 1f50d 1f512-1f513 1f549-1f54a 1f550-1f567 "
    "1f56f-1f570 1f573-1f579 1f587 1f58a-1f58d 1f590 1f5a5 1f5a8 1f5b1-1f5b2 1f5bc 1f5c2-1f5c4 1f5d1-1f5d3 "
    "1f5dc-1f5de 1f5e1 1f5e3 1f5e8 1f5ef 1f5f3 1f5fa 1f610 1f687 1f68d 1f691 1f694 1f698 1f6ad 1f6b2 1f6b9-1f6ba "
    "1f6bc 1f6cb 1f6cd-1f6cf 1f6e0-1f6e5 1f6e9 1f6f0 1f6f3 "
)
_PICTURES = _STYLED + _characters(
    "1f004 1f02c-1f02f 1f094-1f09f 1f0af-1f0b0 1f0c0 1f0cf-1f0d0 1f0f6-1f0ff 1f170-1f171 1f17e-1f17f 1f18e "
    "1f191-1f19a 1f1af-1f1e5 1f201-1f20f 1f21a 1f22f 1f232-1f23a 1f23c-1f23f 1f249-1f25f 1f266-1f321 1f324-1f393 "
    "1f396-1f397 1f399-1f39b 1f39e-1f3f0 1f3f3-1f3f5 1f3f7-1f3fa 1f400-1f4fd 1f4ff-1f53d 1f549-1f54e 1f550-1f567 "
    "1f56f-1f570 1f573-1f57a 1f587 1f58a-1f58d 1f590 1f595-1f596 1f5a4-1f5a5 1f5a8 1f5b1-1f5b2 1f5bc 1f5c2-1f5c4 "
    "1f5d1-1f5d3 1f5dc-1f5de 1f5e1 1f5e3 1f5e8 1f5ef 1f5f3 1f5fa-1f64f 1f680-1f6c5 1f6cb-1f6d2 1f6d5-1f6e5 1f6e9 "
    "1f6eb-1f6f0 1f6f3-1f6ff 1f7dc-1f7f0 1f80c-1f80f 1f848-1f84f 1f85a-1f85f 1f888-1f88f 1f8ae-1f8af 1f8bc-1f8bf "
    "1f8c2-1f8cf 1f8d9-1f8ff 1f90c-1f93a 1f93c-1f945 1f947-1f9ff 1fa58-1fa5f 1fa6e-1faff 1fc00-1fffd "
)
_IN_EMOJI = re.compile(
    rf"(?<=[0-9#*])\ufe0f(?={KEYCAP})|(?<=[{_STYLED}])\ufe0f(?!\ufe0f)"
    rf"|(?:(?<=[{_PICTURES}])|(?<=[{_STYLED}]\ufe0f)|(?<=[{_PICTURES}][\U0001f3fb-\U0001f3ff]))\u200d(?=[{_PICTURES}])"
)
# Kana, Chinese characters and their punctuation.
_EAST_ASIAN = _characters(
    "3001-3003 3005-3011 3014-301b 3041-30ff 31f0-31ff 3400-4dbf 4e00-9fff f900-faff ff01 ff08-ff09 ff0c ff0e "
    "ff1a-ff1b ff1f ff66-ff9f 20000-3fffd"
)
_IN_PROSE = re.compile(  # beside a word, as a blank is; between Chinese or Japanese; a blank line of a mail
    r"(?<=\S)[\u00a0\u2009\u202f](?= ?\S)|(?<=\S )\u00a0(?=\S)"
    rf"|(?<=[{_EAST_ASIAN}])\u3000(?=[{_EAST_ASIAN}])|(?<=\n)\u00a0(?=\n)"
)


def find_unseen(text: str, *, value: bool = False) -> Iterator[tuple[int, int]]:
    """Yield start and end of each stretch to mark: a run of one character, of tags, or a pile of combining marks.

    `value`: it may run as it is, so that no space is ordinary but the plain one.
    """
    at = 0
    while at < len(text):
        if plain := PLAIN.match(text, at):
            at = plain.end()
            continue
        start, char, marked = at, text[at], False
        at += 1
        if tags := TAGS.match(text, start):
            at, marked = tags.end(), True
        elif is_hidden(char) or is_odd_space(char):
            marked = not is_ordinary(text, start, value=value)
            while marked and at < len(text) and text[at] == char:
                at += 1
        elif is_mark(char):
            while at < len(text) and is_mark(text[at]):
                at += 1
            marked = at - start > PILE or any(map(is_overlay, text[start:at]))
        if marked:
            yield start, at


def is_hidden(char: str) -> bool:
    """Tell whether `char` draws nothing, or changes how its neighbours are drawn."""
    if char in "\n\t" or " " <= char <= "~":
        return False
    category = unicodedata.category(char)
    if category in ("Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp") or char in DRAW_NOTHING:
        return True
    return "\ufe00" <= char <= "\ufe0f" or "\U000e0100" <= char <= "\U000e01ef"


def is_odd_space(char: str) -> bool:
    return char != " " and unicodedata.category(char) == "Zs"


def is_ordinary(text: str, at: int, *, value: bool) -> bool:
    """Tell whether a hidden character or odd space is where emoji, or prose, have it."""
    return bool(_IN_EMOJI.match(text, at) or (not value and _IN_PROSE.match(text, at)))


def is_mark(char: str) -> bool:
    """Tell whether it is drawn on the character before it."""
    return bool(unicodedata.combining(char)) or (unicodedata.category(char) == "Me" and char != KEYCAP)


def is_overlay(char: str) -> bool:
    """Tell whether it is drawn over the character before it, or around it."""
    return unicodedata.combining(char) == OVERLAY or (unicodedata.category(char) == "Me" and char != KEYCAP)
