"""Find words in Python that a person reads and that nobody could translate.

Such words are a string with two words in it, a label of choices, or what one of the `SPOKEN` arguments names. They
belong into gettext, gettext_lazy, ngettext or pgettext, by name or as `_`. Docstrings, SQL, logs and what is raised for
programmers are not read by people. A line that has to stay as it is says why: `# not translated: <reason>`. In
the head of a statement (a class, a function, a list of texts) that counts for all of it.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterable, Iterator, Set
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
# The rooms that speak to people. Left out: the HTTP API, management commands and logs, which speak English to programs
# and operators; agents' own words, cards and events, which are data in the language of whoever wrote them.
ROOMS = (
    "agents/admin.py", "agents/compatibility", "agents/errors.py", "agents/models", "agents/moves",
    "agents/presentation", "agents/queries", "agents/runner/apply_outcome.py", "agents/runner/apply_recovery.py",
    "agents/runner/outcome_words.py", "agents/runs",
    "agents/steps/recovery_gate.py", "agents/tokens.py", "agents/views", "approvals/admin", "approvals/audit",
    "approvals/cards/answer.py", "approvals/cards/verdicts.py", "approvals/consequences", "approvals/decisions",
    "approvals/english.py", "approvals/errors.py", "approvals/forms", "approvals/gates", "approvals/models",
    "approvals/outbound", "approvals/policy", "approvals/preflight", "approvals/presentation", "approvals/schema",
    "approvals/templatetags", "approvals/tools", "approvals/views", "checkpoints/admin", "checkpoints/errors.py",
    "checkpoints/models", "checkpoints/retention", "checkpoints/runs/holds.py", "checkpoints/runs/notes.py",
    "config/administration.py",
)  # fmt: skip
MARKERS = {
    "_", "gettext", "gettext_lazy", "ngettext", "ngettext_lazy", "pgettext", "pgettext_lazy", "npgettext",
}  # fmt: skip
SPOKEN = {"verbose_name", "verbose_name_plural", "help_text", "label", "description", "empty_value"}
FOR_PROGRAMMERS = {
    "AssertionError", "Http404", "ImproperlyConfigured", "KeyError", "NotImplementedError", "RuntimeError", "TypeError",
    "ValueError",
}  # fmt: skip
LOGGERS = {"log", "logger", "logging", "warnings"}
WORDS = re.compile(
    r"[^\W\d_]{2,}['\u2019\u201d,;:.]*\s+[\u201c(]?[^\W\d_]{2,}|\{\}[,;:.]?\s+[^\W\d_]{2,}|[^\W\d_]{2,}\s+\{\}"
)
LABEL = re.compile(r"[A-Z][^\W\d_]+")
# Statements, clauses of them, and columns as RawSQL and triggers take them; CSS classes, paths and formats.
NOT_READ = re.compile(
    r"\s*('\w+',|ARRAY)?[\s(]*(SELECT|UPDATE|INSERT|DELETE|WITH|CREATE|ALTER|LOCK|SET|FROM|WHERE|AND|OR|ORDER|GROUP|JOIN|LEFT|COPY)\b"
    r"|[a-z]+(-[a-z]+)*( [a-z]+(-[a-z]+)+)+$|\s*(\{\})?<[a-z]|(attachment|default-src|text/)"
    r"|(\{\}, )?[a-z_]+ (=|IN) |\w+(, \w+_\w+)+(, id)?$|\{\}, \{\}, \w+ = "
    r"|[\s\S]*( (IS NOT|IN|AND|OR) \(|\bEXISTS \(|\bUNION ALL\b|\bCROSS JOIN\b| DESC\b|::\w+|%s\)|\bFOR NO KEY\b)"
)
REASON = re.compile(r"# not translated: \S")


class Fault(NamedTuple):
    """One thing to mend, at a line counted from 1."""

    line: int
    what: str


def faults(source: str) -> list[Fault]:
    """List what is to be mended in this module."""
    lines = source.split("\n")
    tree = ast.parse(source)
    reasons = {number for number, line in enumerate(lines, 1) if REASON.search(line)}
    spared = {line for node in ast.walk(tree) for line in _lines(node, reasons)} | reasons
    return sorted(fault for fault in set(_faults(tree)) if fault.line not in spared)


def _lines(node: ast.AST, reasons: Set[int]) -> Iterable[int]:
    """Return the lines of a statement that has a reason: in its head, or anywhere where it holds no others."""
    if not isinstance(node, ast.stmt):
        return ()
    every = range(node.lineno, (node.end_lineno or node.lineno) + 1)
    body = getattr(node, "body", None)
    head = range(node.lineno, body[0].lineno) if body else every
    return every if reasons & set(head) else ()


def _faults(node: ast.AST, *, spoken: bool = False) -> Iterator[Fault]:
    """Yield the faults below a node. `spoken`: a single word counts there too."""
    if isinstance(node, ast.Constant | ast.JoinedStr):
        words = _text(node)
        if _read(words, spoken=spoken):
            yield Fault(node.lineno, f"mark for translation: “{shortened(words)}”")
        return
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return  # a docstring
    if isinstance(node, ast.FunctionDef) and node.name in ("__str__", "__repr__"):
        return  # shells and logs show it too
    if isinstance(node, ast.Assign) and any(_name(target) == "permissions" for target in node.targets):
        return  # Django writes their names into the database
    if isinstance(node, ast.Call):
        name = _name(node.func)
        if name in MARKERS:
            for each in node.args:
                if isinstance(each, ast.JoinedStr | ast.BinOp):
                    yield Fault(each.lineno, "put values in after translation: _(“… %(name)s …”) % {…}, no f-string")
            return
        if name in FOR_PROGRAMMERS or _name(getattr(node.func, "value", None)) in LOGGERS:
            return
    if isinstance(node, ast.ClassDef) and any(_name(base).endswith("Choices") for base in node.bases):
        for label in _labels(node):
            yield from _faults(label, spoken=True)
        return
    for child in ast.iter_child_nodes(node):
        yield from _faults(child, spoken=isinstance(node, ast.keyword) and node.arg in SPOKEN)


def _labels(choices: ast.ClassDef) -> Iterator[ast.AST]:
    """Yield the labels of choices: the second of each pair."""
    for statement in choices.body:
        if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Tuple):
            yield statement.value.elts[-1]


def _name(node: ast.AST | None) -> str:
    """Return the last name of a dotted one: `gettext` of `translation.gettext`."""
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _text(node: ast.Constant | ast.JoinedStr) -> str:
    """Return a string as it would be read, {} for each value in it."""
    if isinstance(node, ast.JoinedStr):
        return "".join(_text(each) if isinstance(each, ast.Constant) else "{}" for each in node.values)
    return node.value if isinstance(node.value, str) else ""


def _read(words: str, *, spoken: bool) -> bool:
    if NOT_READ.match(words):
        return False
    return bool(WORDS.search(words) or (spoken and LABEL.match(words)))


def shortened(text: str) -> str:
    words = " ".join(text.split())
    return words if len(words) <= 40 else words[:39] + "…"


def check(paths: Iterable[Path]) -> list[str]:
    """List the faults of these files and folders as `file:line: what to do`."""
    files = sorted(file for path in paths for file in (path.rglob("*.py") if path.is_dir() else [path]))
    return [f"{file}:{fault.line}: {fault.what}" for file in files for fault in faults(file.read_text())]


def main(paths: list[str]) -> int:
    """Print the faults of these files and folders, of all `ROOMS` where none is named; return the exit status."""
    found = check([Path(path) for path in paths] or [ROOT / room for room in ROOMS])
    sys.stdout.writelines(f"{line}\n" for line in found)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
