"""Find words in static/js that a person reads and that nobody could translate.

Such words are a string with two words in it, or a capitalized one. They belong into gettext("…") or
ngettext("…", "…", count) of i18n.js. A line that has to stay as it is says why: `// not translated: <reason>`.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.house.python_words import Fault, shortened

ROOT = Path(__file__).resolve().parents[2] / "static" / "js"
STRING = r'"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)*\'|`(?:[^`\\]|\\.)*`'
MARKED = re.compile(r'\bn?gettext\(\s*"(?:[^"\\\n]|\\.)*"(?:,\s*"(?:[^"\\\n]|\\.)*")?')
SKIPPED = re.compile(rf"(?P<comment>//[^\n]*|/\*.*?\*/)|(?P<string>{STRING})", re.DOTALL)
VALUE = re.compile(r"\$\{((?:[^{}]|\{[^{}]*\})*)\}")
WORDS = re.compile(r"[^\W\d_]{2,}['\u2019,;:.]*\s+[^\W\d_]{2,}|\{\}[,;:.]?\s+[^\W\d_]{2,}|[^\W\d_]{2,}:? \{\}")
SINGLE = re.compile(r"\(?[A-Z][a-z]+[.…:]?$|\([a-z]+\)$")
# CSS selectors, classes and media queries; lists of names; the names of keys on a keyboard; values with units.
NOT_READ = re.compile(
    r"[^.…]*[\[\]#=>|]|[.:]\w|([a-z]+ )?[a-z]+-[a-z-]+( [a-z]+)?$|\([a-z-]+: |[a-z]+(, [a-z]+)+$|(Enter|Escape)$"
    r"|\{\} (s|min|h)\b"
)
REASON = re.compile(r"// not translated: \S")


def faults(source: str) -> list[Fault]:
    """List what is to be mended in this script."""
    lines = source.split("\n")
    unmarked = MARKED.sub(lambda call: re.sub(r"[^\n]", " ", call[0]), source)
    found = {
        Fault(unmarked.count("\n", 0, at) + 1, f"mark for translation: “{shortened(words)}”")
        for at, words in _strings(unmarked)
        if (WORDS.search(words) or SINGLE.match(words)) and not NOT_READ.match(words)
    }
    return sorted(fault for fault in found if not REASON.search(lines[fault.line - 1]))


def _strings(source: str, start: int = 0) -> Iterator[tuple[int, str]]:
    """Yield the place and the text of each string, {} for each value in it, and of the strings in these values."""
    for found in SKIPPED.finditer(source):
        if text := found["string"]:
            yield start + found.start(), VALUE.sub("{}", text[1:-1])
            for value in VALUE.finditer(text) if text[0] == "`" else ():
                yield from _strings(value[1], start + found.start() + value.start(1))


def check(root: Path = ROOT) -> list[str]:
    """List the faults of the scripts in this folder as `file:line: what to do`."""
    files = sorted(root.glob("*.js"))
    return [f"{file}:{fault.line}: {fault.what}" for file in files for fault in faults(file.read_text())]


if __name__ == "__main__":
    found = check()
    sys.stdout.writelines(f"{line}\n" for line in found)
    sys.exit(1 if found else 0)
