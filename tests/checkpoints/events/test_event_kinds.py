"""Every kind of event is declared, none that nothing writes, and the page has them as they are declared."""

from __future__ import annotations

import ast
import contextlib
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from agents.models import Effect
from approvals.audit.event_words import WORDS
from approvals.errors import DecisionRefused
from approvals.gates import closing
from checkpoints.events.kinds import KINDS
from checkpoints.models import Event, Run
from checkpoints.values.canonical_json import decode_canonical
from docs.generated_pages import DOCS, MARK, write_events
from tests.factories import ann, bob, decide, edit_amount, eve, make_gate, make_policy, make_team

ROOT = Path(__file__).parents[3]
WRITERS = ("record", "_record", "entry", "say", "_say", "Entry")
FAMILIES = (
    "checkpoint run step gate decision effect policy hold plan seal worker retention audit text team token user secret "
    "webhook tool database signal timer child device channel calendar delegation program"
)
KIND = rf"(?:{FAMILIES.replace(' ', '|')})\.[a-z_]+"
# What every module has that writes an event.
WRITES = rf"\b(?:{'|'.join(WRITERS)})\(|'{KIND}'|'[a-z]+\.' \|\|"
# What a name that is put together in the code can end in.
ENDINGS = {
    "run.": [status.value for status in Run.Status],
    "effect.": [status.value for status in Effect.Status],
    "gate.": list(closing._EVENT.values()),
}


@pytest.fixture(scope="module")
def modules() -> list[ast.AST]:
    files = [file for app in ("checkpoints", "approvals", "agents", "config") for file in (ROOT / app).rglob("*.py")]
    texts = (file.read_text() for file in files if "migrations" not in file.parts)
    return [ast.parse(text) for text in texts if re.search(WRITES, text)]


def kinds_in(tree: ast.AST) -> Iterator[str]:
    """The kinds that the code writes: by the first argument of a writer, or in SQL."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and name_of(node.func) in WRITERS:
            named = [each.value for each in node.keywords if each.arg == "kind"]
            for argument in [*node.args[:1], *named]:
                yield from kinds_of(argument)
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield from re.findall(rf"'({KIND})'", node.value)
            for start in re.findall(r"'([a-z]+\.)' \|\|", node.value):
                yield from (start + end for end in ENDINGS[start])


def kinds_of(argument: ast.expr) -> Iterator[str]:
    if isinstance(argument, ast.IfExp):
        yield from kinds_of(argument.body)
        yield from kinds_of(argument.orelse)
    if isinstance(argument, ast.Constant) and re.fullmatch(KIND, str(argument.value)):
        yield str(argument.value)
    if isinstance(argument, ast.JoinedStr) and isinstance(argument.values[0], ast.Constant):
        start = str(argument.values[0].value)
        yield from (start + end for end in ENDINGS.get(start, ()))


def name_of(function: ast.expr) -> str:
    return getattr(function, "attr", getattr(function, "id", ""))


def test_every_kind_that_the_code_writes_is_declared_generated_and_reads_as_words_and_no_other(
    modules: list[ast.AST],
) -> None:
    written = {kind for tree in modules for kind in kinds_in(tree)}
    assert len(written) > 20
    assert written == set(KINDS)
    page = (DOCS / "events.md").read_text()
    assert page == write_events(page), "run `make generated`"
    assert page.count(MARK) == 1
    unsaid = {"checkpoint.saved", "gate.decided"}  # not shown, by verdict
    assert set(KINDS) - unsaid == set(WORDS)


def test_the_data_of_a_gates_events_are_those_that_are_declared() -> None:
    team = make_team()
    gate = make_gate(policy=make_policy(team, quorum=2))
    decide(gate, ann(team), "edit", arguments=edit_amount(gate, "80.00"))
    with contextlib.suppress(DecisionRefused):
        decide(gate, eve())
    decide(gate, bob(team))
    with contextlib.suppress(DecisionRefused):
        decide(gate, ann(team), seen=bytes(32))
    recorded = Event.objects.filter(run_id=gate.run_id)
    assert {"gate.opened", "gate.edited", "gate.decided", "gate.closed", "decision.refused"} <= {
        e.kind for e in recorded
    }
    for event in recorded:
        keys = set(decode_canonical(bytes(event.data)))
        assert keys <= KINDS[event.kind].keys, event.kind
        now_and_then = {
            "dropped", "verdicts", "confirmed", "confirmed_by", "repeats", "replaces", "attempt", "second_look",
            "on_behalf_of", "rules", "bulk", "asks", "named",
        }  # fmt: skip
        assert keys == KINDS[event.kind].keys - now_and_then or event.kind in ("decision.refused", "run.started"), (
            event.kind
        )
