"""The charsets in which a mail's words are read: those of the WHATWG's Encoding standard, in which browsers read them.

Python knows more. In some of them a reader sees other digits, since few programs know them (utf-7, unicode_escape), and
some take time with the square of the length (punycode). So a reader may not see the words that Python decodes from
these. A charset that nobody knows does no harm: each program shows such words as what their bytes look like.
"""

from __future__ import annotations

import codecs
import re

from .text import one_line

_NAMES = """
utf-8 utf-16 utf-16-le utf-16-be cp866 cp874 tis-620 koi8-r koi8-u mac-roman mac-cyrillic
iso8859-1 iso8859-2 iso8859-3 iso8859-4 iso8859-5 iso8859-6 iso8859-7 iso8859-8
iso8859-9 iso8859-10 iso8859-11 iso8859-13 iso8859-14 iso8859-15 iso8859-16
cp1250 cp1251 cp1252 cp1253 cp1254 cp1255 cp1256 cp1257 cp1258
gb18030 big5 big5hkscs euc_jp iso2022_jp shift_jis cp932 euc_kr cp949
"""
_READ = frozenset(_NAMES.split())  # as Python calls them
# Labels of the standard that Python does not know, or takes for less than a browser does.
_LABELS = {
    **dict.fromkeys(["unicode", "ucs-2", "iso-10646-ucs-2", "csunicode", "unicodefeff"], "utf-16"),
    "unicodefffe": "utf-16-be",
    **dict.fromkeys(["gb2312", "gbk", "x-gbk", "csgb2312", "gb_2312", "gb_2312-80"], "gb18030"),
    **dict.fromkeys(["replacement", "iso-2022-cn", "iso-2022-cn-ext"], "replacement"),  # browsers show none of it
}
# In these a byte of a digit may be a part of another character, which a reader sees, however broken the rest is.
_DIGITS_MAY_BE_PARTS = ("utf-16", "utf-16-le", "utf-16-be", "iso2022_jp", "gb18030")


def in_sight(data: bytes, charset: str) -> bool:
    """Tell whether a reader is sure to see what this program reads in bytes of that charset."""
    codec = _codec(charset)
    if codec in _DIGITS_MAY_BE_PARTS:
        try:
            data.decode(codec)
        except ValueError:
            return False
    return codec in ("", *_READ)


def decoded(data: bytes, charset: str) -> tuple[str, list[str]]:
    """(bytes as text, what is wrong with them).

    They are read by the charset they claim, else as UTF-8, else as Windows-1252, in which every byte means something;
    but by the one they claim, with U+FFFD for what is broken, where digits of another would be none in it.
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
            if codec in _DIGITS_MAY_BE_PARTS:
                return data.decode(codec, "replace"), wrong
    return data.decode("windows-1252", "replace"), wrong


def _codec(charset: str) -> str:
    """Python's name of a charset, that of UTF-8 for ASCII; empty where it knows none of that name."""
    label = charset.strip("\"' ").lower()
    try:
        name = codecs.lookup(_LABELS.get(label, label)).name
    except (LookupError, ValueError):
        return _LABELS.get(label, "")
    return "utf-8" if name == "ascii" else _LABELS.get(name, name)
