"""Counts the code lines of production Python, and fails above the ceiling in pyproject.toml.

A code line is neither blank, nor comment, nor docstring (of a module, class, function or attribute); migrations and
generated files are not counted.
"""

from __future__ import annotations

import ast
import io
import sys
import tokenize
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PRODUCTION = ("agents", "approvals", "benchmarks", "checkpoints", "clients/python/src", "config", "docs")
SILENT = {
    tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER,
}  # fmt: skip
FEW = 8  # lines of a module that is hardly one


def modules() -> Iterator[Path]:
    """Yield every module of production Python."""
    for top in PRODUCTION:
        for path in sorted((ROOT / top).rglob("*.py")):
            if not {"migrations", "node_modules", "__pycache__"} & set(path.parts):
                yield path


def code_lines(source: str) -> int:
    """Return how many lines of a module's source hold code."""
    held = {
        line
        for token in tokenize.generate_tokens(io.StringIO(source).readline)
        if token.type not in SILENT
        for line in range(token.start[0], token.end[0] + 1)
    }
    return len(held - set(_docstring_lines(ast.parse(source))))


def _docstring_lines(tree: ast.Module) -> Iterator[int]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield from range(node.lineno, (node.end_lineno or 0) + 1)


def ceiling() -> int:
    """Return the most code lines that pyproject.toml allows."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    most: int = settings["tool"]["holdpoint"]["code_lines"]
    return most


def main() -> int:
    """Print the count by top-level folder; return the exit status."""
    counts: Counter[str] = Counter()
    longer = 0
    for path in modules():
        source = path.read_text()
        counts[path.relative_to(ROOT).parts[0]] += code_lines(source)
        longer += len(source.splitlines()) > FEW
    total, most = counts.total(), ceiling()
    for top, count in counts.items():
        sys.stdout.write(f"{top:12} {count:7,}\n")
    sys.stdout.write(f"code lines   {total:7,} of at most {most:,}, in {longer:,} modules of more than {FEW} lines\n")
    return int(total > most)


if __name__ == "__main__":
    sys.exit(main())
