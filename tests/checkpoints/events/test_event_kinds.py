"""Every kind of event is explained, and nothing is explained that nothing writes."""

from __future__ import annotations

import ast
import contextlib
import re
from collections.abc import Iterator
from pathlib import Path

from agents.models import Effect
from approvals.audit.event_words import WORDS
from approvals.errors import DecisionRefused
from approvals.gates import closing
from checkpoints.models import Event, Run
from checkpoints.values.canonical_json import decode
from tests.factories import ann, bob, decide, edit_amount, eve, make_gate, make_policy, make_team

ROOT = Path(__file__).parents[3]
DOCUMENT = ROOT / "docs" / "events.md"
WRITERS = ("record", "_record", "entry", "say", "_say", "Entry")
FAMILIES = (
    "checkpoint run step gate decision effect policy hold plan seal worker retention audit text team token user secret "
    "webhook tool database signal timer child device channel calendar delegation program"
)
KIND = rf"(?:{FAMILIES.replace(' ', '|')})\.[a-z_]+"
# What a name that is put together in the code can end in.
ENDINGS = {
    "run.": [status.value for status in Run.Status],
    "effect.": [status.value for status in Effect.Status],
    "gate.": list(closing._EVENT.values()),
}


def documented() -> dict[str, set[str]]:
    """Kind -> the keys of its data."""
    rows = re.findall(r"^\| `([a-z_.]+)` \|([^|]*)\|([^|]*)\|([^|]*)\|", DOCUMENT.read_text(), re.MULTILINE)
    return {kind: set(re.findall(r"`(\w+)`", data)) for kind, _, _, data in rows}


def written() -> set[str]:
    """The kinds that the code writes: by the first argument of a writer, or in SQL."""
    found: set[str] = set()
    for app in ("checkpoints", "approvals", "agents", "config"):
        for file in (ROOT / app).rglob("*.py"):
            if "migrations" not in file.parts:
                found |= set(kinds_in(ast.parse(file.read_text())))
    return found


def kinds_in(tree: ast.AST) -> Iterator[str]:
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


def test_every_kind_that_the_code_writes_is_explained_and_no_other() -> None:
    assert len(written()) > 20
    assert written() == set(documented())


def test_every_kind_reads_as_words_on_a_page() -> None:
    unsaid = {"checkpoint.saved", "gate.decided"}  # not shown, by verdict
    assert set(documented()) - unsaid == set(WORDS)


def test_the_data_of_a_gates_events_are_those_that_are_explained() -> None:
    team = make_team()
    gate = make_gate(policy=make_policy(team, quorum=2))
    decide(gate, ann(team), "edit", arguments=edit_amount(gate, "80.00"))
    with contextlib.suppress(DecisionRefused):
        decide(gate, eve())
    decide(gate, bob(team))
    with contextlib.suppress(DecisionRefused):
        decide(gate, ann(team), seen=bytes(32))
    explained = documented()
    events = Event.objects.filter(run_id=gate.run_id)
    assert {"gate.opened", "gate.edited", "gate.decided", "gate.closed", "decision.refused"} <= {e.kind for e in events}
    for event in events:
        keys = set(decode(bytes(event.data)))
        assert keys <= explained[event.kind], event.kind
        now_and_then = {
            "dropped", "verdicts", "confirmed", "confirmed_by", "repeats", "replaces", "attempt", "second_look",
            "on_behalf_of", "denials", "rules", "bulk", "asks",
        }  # fmt: skip
        assert keys == explained[event.kind] - now_and_then or event.kind in (
            "decision.refused",
            "run.started",
        ), event.kind
