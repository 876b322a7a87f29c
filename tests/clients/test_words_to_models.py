"""What a model is told of something that is not done says what to do instead, and a time only as a fact.

"Ask again after 23:50:30 UTC" after two rejections was taken for an order: the agent asked until somebody said yes.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from holdpoint import Expired, Rejected, Unreachable, Withdrawn
from holdpoint.answers import Ending, Gate
from holdpoint.endings import INSTEAD, gate_refusal
from holdpoint.errors import make_problem
from holdpoint.langgraph.interrupts import NOBODY
from holdpoint.mcp import asking, tools
from holdpoint.tool_runs.plan import Verdict

from approvals.errors import AskedTooOften, AskedTooSoon

ROOT = Path(__file__).resolve().parent.parent.parent
ORDERS = re.compile(
    r"\b(ask|try|send|come|call)\b[^.]*\bagain\b[^.]*\b(after|at|later|then|when|until|in|once) ?", re.IGNORECASE
)
NOW = datetime(2026, 3, 2, 23, 40, 30, tzinfo=UTC)
UNTIL = NOW + timedelta(minutes=10)
KNOWN: dict[str, Any] = {"gate": 7, "run": 3, "url": "http://h/gates/7/"}


def ended(kind: str, **more: Any) -> Gate:
    """A gate about one payment that ended so."""
    ending = {"kind": kind, "by": "Ann", "at": NOW, "feedback": "Not this month", **more}
    made: Any = Gate
    gate: Gate = made.model_construct(outcome=Ending.model_validate(ending))
    return gate


def verdict(kind: Any) -> str:
    """What an adapter tells of a call that does not run."""
    return Verdict(id="1", tool="pay", call="c", kind=kind, arguments={}, asked={}, by="Ann", reason="No").words


def of_the_server(refusal: AskedTooOften, status: int = 429) -> str:
    """What an MCP client and the hook tell of a refusal of the server's."""
    return asking.in_trouble(make_problem(status, {"detail": str(refusal), "code": refusal.code}))


TOLD = {
    "rejected": str(gate_refusal(ended("rejected"), ["pay"], KNOWN)),
    "expired": str(gate_refusal(ended("expired"), ["pay"], KNOWN)),
    "withdrawn": str(gate_refusal(ended("withdrawn"), ["pay"], KNOWN)),
    "a call that was rejected": verdict("reject"),
    "a call that nobody decided": verdict("expired"),
    "a call of a graph that nobody decided": NOBODY,
    "rejected twice": of_the_server(AskedTooSoon(7, 2, now=NOW, until=UNTIL)),
    "asked too often": of_the_server(AskedTooOften("payouts", 120, "default", now=NOW, until=UNTIL)),
    "too many requests": asking.in_trouble(
        make_problem(429, {"detail": "More than 9 requests a minute. The next is answered in 8 s."})
    ),
    "no answer": asking.in_trouble(Unreachable("No answer within 60 s.")),
    "an outage": asking.in_trouble(make_problem(503, {"detail": "The disk is full."})),
    "an answer that came too late": tools.LATE,
}


@pytest.mark.parametrize("told", TOLD.values(), ids=list(TOLD))
def test_it_says_what_to_do_instead_and_orders_no_other_try(told: str) -> None:
    assert INSTEAD in told
    assert not ORDERS.search(told.replace(INSTEAD, ""))


def test_it_is_the_word_for_it_and_a_time_comes_at_the_end() -> None:
    assert [type(gate_refusal(ended(kind), ["pay"], KNOWN)) for kind in ("rejected", "expired", "withdrawn")] == [
        Rejected, Expired, Withdrawn,
    ]  # fmt: skip
    assert str(AskedTooSoon(7, 2, now=NOW, until=UNTIL)).endswith(f"{INSTEAD} This holds until 23:50:30 UTC.")


def test_server_and_both_clients_say_the_same() -> None:
    assert AskedTooOften.instead == INSTEAD
    assert f'"{INSTEAD}"' in (ROOT / "clients/typescript/src/endings.ts").read_text()


def texts(path: Path) -> Iterator[str]:
    """The texts of a module, without its docstrings and comments."""
    if path.suffix == ".ts":
        yield from re.findall(
            r'"[^"\n]*"|`[^`]*`', re.sub(r"/\*.*?\*/|//[^\n]*", "", path.read_text(), flags=re.DOTALL)
        )
        return
    tree = ast.parse(path.read_text())
    docs = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else "…" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docs:
            yield node.value


PLACES = [
    *(ROOT / "clients/python/src/holdpoint").rglob("*.py"),
    *(each for each in (ROOT / "clients/typescript/src").glob("*.ts") if each.name != "openapi.ts"),
    *(ROOT / "agents/remote").glob("*.py"),
    *(ROOT / "agents/api/protocol").glob("*.py"),
    *(ROOT / "agents/api/programs").glob("*.py"),
    ROOT / "agents/work_errors.py",
    ROOT / "approvals/errors.py",
]


def test_no_text_of_the_clients_or_for_them_orders_another_try_at_a_time() -> None:
    orders = re.compile(
        r"\b(ask|try|send|call)\b[^.]*\bagain (after|at|later|then|when|in (a|half|some|…))\b", re.IGNORECASE
    )
    found = {f"{path.name}: {text}" for path in PLACES for text in texts(path) if orders.search(text)}
    assert found == set()
