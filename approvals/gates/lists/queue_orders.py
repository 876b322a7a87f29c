"""The orders of the queues, as SQL on a gate `g`: each is that of an index, and its pages begin where one ended."""

from __future__ import annotations

_RANKED = enumerate(("critical", "high", "medium"))
_RANKS = " ".join(f"WHEN g.risk = '{risk}' THEN {place}" for place, risk in _RANKED)
RANK = f"CASE {_RANKS} ELSE 3 END"
URGENT = "deadline, opened_at, id"
NEWEST = "closed_at DESC, id DESC"
SAID_LAST = "said DESC"  # of the reader's own decisions
# The orders of a queue of open gates; amounts of one currency stand together, since they cannot be compared.
SORTS = {
    "": URGENT,
    "oldest": "opened_at, id",
    "amount": "amount_currency DESC, amount_value DESC, id DESC",
    "risk": "rank, opened_at, id",
    "delay": "delay_currency DESC, delay_value DESC, id DESC",
}
_AMOUNTS = ("amount_currency", "amount_value", "delay_currency", "delay_value")
COLUMNS = ", ".join(f"g.{name}" for name in ("id", "deadline", "opened_at", "closed_at", *_AMOUNTS))
COLUMNS += f", {RANK} AS rank"


def _of_last(column: str) -> str:
    return f"(SELECT {column} FROM approvals_gate WHERE id = %s)"  # noqa: S608 - constants


def _unless_due(column: str, first: str) -> str:
    return _of_last(f"CASE WHEN deadline IS NULL THEN {column} ELSE {first} END")


def _beyond(sign: str, *columns: str) -> str:
    """Return the condition that a row comes after the last one in these columns, all in one direction."""
    before = [_of_last(each.replace("g.", "")) for each in columns]
    return f"({', '.join(columns)}) {sign} ({', '.join(before)})"


_SAID = "(SELECT max(l.id) FROM approvals_decision l WHERE l.gate_id = %s AND l.user_id = d.user_id)"
# Each begins in the index where the gate before stands: one value at a time, as no index serves a row of a subquery.
# Gates without a deadline come last, as a stretch of their own.
AFTER = {
    URGENT: [
        _beyond(">", "g.deadline", "g.opened_at", "g.id"),
        "g.deadline IS NULL AND (g.opened_at, g.id) >"
        f" ({_unless_due('opened_at', repr('-infinity'))}, {_unless_due('id', '0')})",
    ],
    NEWEST: [_beyond("<", "g.closed_at", "g.id")],
    SORTS["oldest"]: [_beyond(">", "g.opened_at", "g.id")],
    SORTS["amount"]: [_beyond("<", "g.amount_currency", "g.amount_value", "g.id")],
    SORTS["risk"]: [_beyond(">", RANK, "g.opened_at", "g.id")],
    SORTS["delay"]: [_beyond("<", "g.delay_currency", "g.delay_value", "g.id")],
    SAID_LAST: [f"d.id < {_SAID}"],
}
