"""Prints the figures that the package's docstring names.

A place writes a gate's row where the source has: a text with `UPDATE`, `INSERT INTO` or `DELETE FROM` before
`approvals_gate`; a writing method on a chain that begins with `Gate.objects` or goes through `.gates`; `.save(` or
`.delete(` on what is called `gate` or `…_gate`; or `Gate(`, which makes a row. A table in a variable is not found.
"""

from __future__ import annotations

import ast
import os
import re
import sys
from collections import Counter
from collections.abc import Iterator

import django

from tests.harness.session import FAST, ROOT, Session
from tests.house.code_lines import code_lines, modules

from .walk import LOGGED, PACKAGES, WRITES, Walk

ROOMS = re.compile(
    "approvals/(gates|decisions|policy|policy_changes|cards|consequences|assignments|notifications|channels|webhooks|"
    "outbound|presentation|views|models)/|agents/gates/|agents/remote/post_gate"
)
TEXT = re.compile(r'\b(UPDATE|INSERT\s+INTO|DELETE\s+FROM)\s+"?approvals_gate\b')
CALL = re.compile(
    r"(^Gate\.objects|\.gates)\b.*\.(((bulk|get_or|update_or)_)?(create|update)|delete)$|(^|[._])gate\.(save|delete)$|^Gate$"
)
say = sys.stdout.write


def main() -> None:
    session = Session(apart=True)
    session.postgres.settings = FAST | LOGGED
    own = {"HOLDPOINT_AGENTS": "tests.factories.sample_agents", "HOLDPOINT_LOG_LEVEL": "ERROR"}
    os.environ |= session.environment | own | {"DJANGO_SETTINGS_MODULE": "config.settings"}
    try:
        session.start_shared()
        session.start_own()
        django.setup()
        from .requests import walk_all

        say_figures(walk_all(session))
    finally:
        session.stop_own()
        session.stop_shared()


def say_figures(walks: dict[str, Walk]) -> None:
    from tests.house.test_who_may import EXCEPTIONS

    row = "{:24} {:>8} {:>10} {:>11} {:>7} {:>13}\n"
    say(row.format("request", "modules", "functions", "statements", "writes", "processor ms"))
    for name, (functions, statements, milliseconds) in walks.items():
        counts = len(functions), functions.total(), len(statements), len(list(filter(WRITES.search, statements)))
        say(row.format(name, *counts, f"{milliseconds:.1f}"))
    texts = {str(path.relative_to(ROOT)): path.read_text() for path in modules()}
    figures: Counter[str] = Counter()
    for path, text in texts.items():
        if room := ROOMS.match(path):
            figures[room[0]] += code_lines(text)
    figures["all rooms, mark 12,500"] = figures.total()
    writers = [f"{path}:{line}" for path in texts if path.startswith(PACKAGES) for line in writing_lines(texts[path])]
    figures.update({"exceptions to who may": len(EXCEPTIONS), "places that write a gate": len(writers)})
    say("".join(f"\n{name:30} {number:7,}" for name, number in figures.items()))
    say("".join(f"\n  {place}" for place in writers) + "\n")
    for name, (functions, *_) in walks.items() if "--modules" in sys.argv else ():
        say("\n".join([f"\n{name}", *(f"{number:6}  {module}" for module, number in functions.most_common()), ""]))


def writing_lines(source: str) -> Iterator[int]:
    for node in ast.walk(ast.parse(source)):
        if (isinstance(node, ast.Call) and CALL.search(ast.unparse(node.func))) or (
            isinstance(node, ast.Constant) and isinstance(node.value, str) and TEXT.search(node.value)
        ):
            yield node.lineno


if __name__ == "__main__":
    main()
