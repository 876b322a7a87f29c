"""The filters of a queue, as SQL on a gate `g`.

Also here: the orders of the queues, as SQL on a gate `g`: each is that of an index, and its pages begin where one
ended.

It also collects the words by which a gate is found: its titles, the people in it, and the values that it asks about.

Never a secret: what a schema hides is masked before it is read, and a mask has no words. Bounded, since an agent
chooses how much it asks about.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from approvals.cards.card import Card
from approvals.schema.redact import MASK
from checkpoints.postgresql.text_search import join_terms, looked_for, person_term

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


MATCHES = "to_tsvector('simple'::regconfig, coalesce(g.terms, '')) @@ to_tsquery('simple', %s)"  # as the index has it
# Read once for all policies: otherwise a search by a person with hundreds of them reads that index hundreds of times.
_FOUND = f"""g.id IN (
  WITH found AS MATERIALIZED (SELECT g.id FROM approvals_gate g WHERE {MATCHES} OR g.id = %s OR g.run_id = %s)
  SELECT found.id FROM found)"""  # noqa: S608 - constants
# The first line by itself answers for an agent of which there is no plan, before any gate is read.
_OF_AGENT = """EXISTS (SELECT FROM checkpoints_plan WHERE agent = %s)
  AND EXISTS (SELECT FROM checkpoints_run r JOIN checkpoints_plan p ON p.id = r.plan_id
    WHERE r.id = g.run_id AND p.agent = %s)"""


@dataclass(frozen=True, kw_only=True)
class QueueFilters:
    """The filters of a queue."""

    risk: str = ""
    agent: str = ""
    words: str = ""  # beginnings of words that a row shows, or the number of the gate or of its run
    after: int = 0  # the id of the gate before the first one
    closed_within: float = 0  # seconds; 0 for any time
    due: datetime | None = None  # the latest deadline; None: no bound
    sort: str = ""  # one of SORTS
    people: tuple[tuple[str, tuple[int, ...]], ...] = ()  # word -> ids of the people whose names it begins

    def conditions(self, order: str) -> list[tuple[str, list[Any]]]:
        """Return the filter as SQL on a gate `g`, with its parameters, for each stretch of the order that it takes."""
        condition, values = self._condition()
        if not self.after:
            return [(condition, values)]
        begins = [(f" AND {each}", [self.after] * each.count("%s")) for each in AFTER[order]]
        return [(condition + begin, values + more) for begin, more in begins]

    def _condition(self) -> tuple[str, list[Any]]:
        parts: list[str] = []
        values: list[Any] = []
        if self.risk:
            parts.append("g.risk = %s")
            values.append(self.risk)
        if self.agent:
            parts.append(_OF_AGENT)
            values += [self.agent, self.agent]
        if self.words.strip():
            words, gate, run = looked_for(self.words, dict(self.people))
            parts.append(_FOUND)
            values += [words, gate, run]
        if self.due:
            parts.append("g.deadline <= %s")
            values.append(self.due)
        if self.closed_within:
            parts.append("g.closed_at >= statement_timestamp() - make_interval(secs => %s)")
            values.append(self.closed_within)
        return "".join(f" AND {part}" for part in parts), values


MOST = 3_000  # characters of values
EACH = 200  # characters of one value
DEEPEST = 20


def of_card(card: Card, *people: int | None) -> str:
    """Return the search terms of a card and of the people who ask, by their ids."""
    asking = [person_term(person) for person in people if person]
    shown = join_terms(card.title, card.for_whom, card.resource, card.amount, *asking)
    return " ".join(dict.fromkeys(f"{shown} {_bounded(card)}".split()))


def found_in(value: Any, at: str = "", depth: int = 0) -> Iterator[tuple[str, str]]:
    """Yield (path, text) for each text and number in a value that is already masked."""
    if isinstance(value, dict) and depth < DEEPEST:
        for name, inner in value.items():
            yield from found_in(inner, f"{at}.{name}" if at else str(name), depth + 1)
    elif isinstance(value, list | tuple) and depth < DEEPEST:
        for inner in value:
            yield from found_in(inner, at, depth + 1)
    elif isinstance(value, str) and MASK not in value:
        yield at, value[:EACH]
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield at, str(value)


def _bounded(card: Card) -> str:
    said: list[str] = []
    left = MOST
    for action in card.actions:
        for text in (action.tool, *(found for _path, found in found_in(action.masked_in_messages))):
            words = join_terms(text)
            if len(words) > left:
                return " ".join(said)
            left -= len(words)
            said.append(words)
    return " ".join(said)
