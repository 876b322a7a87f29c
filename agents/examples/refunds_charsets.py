"""The charsets in which a mail's words are read: those of the WHATWG's Encoding standard, in which browsers read them.

Python knows more. In some of them a reader sees other digits, since few programs know them (utf-7, unicode_escape), and
some take time with the square of the length (punycode). Words in these are none that a reader is sure to see. A charset
that nobody knows is another thing: each program shows such words as what they look like.
"""

from __future__ import annotations

import codecs
import re

from .refunds_text import one_line

_NAMES = """
utf-8 utf-16 utf-16-le utf-16-be cp866 cp874 tis-620 koi8-r koi8-u mac-roman mac-cyrillic
iso8859-1 iso8859-2 iso8859-3 iso8859-4 iso8859-5 iso8859-6 iso8859-7 iso8859-8
iso8859-9 iso8859-10 iso8859-11 iso8859-13 iso8859-14 iso8859-15 iso8859-16
cp1250 cp1251 cp1252 cp1253 cp1254 cp1255 cp1256 cp1257 cp1258
gb2312 gbk gb18030 big5 big5hkscs euc_jp iso2022_jp shift_jis cp932 euc_kr cp949
"""
_READ = frozenset(_NAMES.split())  # as Python calls them


def in_sight(charset: str) -> bool:
    """Whether a reader is sure to see what this program reads in it."""
    return _codec(charset) in ("", *_READ)


def decoded(data: bytes, charset: str) -> tuple[str, list[str]]:
    """(bytes as text, what is wrong with them).

    They are read by the charset they claim, else as UTF-8, else as Windows-1252, in which every byte means something.
    """
    codec, wrong = _codec(charset), []
    if codec not in _READ:
        wrong.append(f"its character set is unknown ({one_line(charset, 40)})")
        codec = "utf-8"
    if codec == "iso8859-1" and re.search(rb"[\x80-\x9f]", data):
        codec = "cp1252"  # what such mails mean: the standard reads it so too
    for candidate in (codec, "utf-8"):
        try:
            return data.decode(candidate), wrong
        except ValueError:
            wrong.append("some of its characters are not what it says they are")
    return data.decode("windows-1252", "replace"), wrong


def _codec(charset: str) -> str:
    """Python's name of a charset, that of UTF-8 for ASCII; empty where it knows none of that name."""
    try:
        name = codecs.lookup(charset.strip("\"' ")).name
    except (LookupError, ValueError):
        return ""
    return "utf-8" if name == "ascii" else name
