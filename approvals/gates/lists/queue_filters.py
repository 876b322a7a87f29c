"""The filters of a queue, as SQL on a gate `g`."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from checkpoints.postgresql.text_search import looked_for

from .queue_orders import AFTER

MATCHES = "to_tsvector('simple'::regconfig, coalesce(g.terms, '')) @@ to_tsquery('simple', %s)"  # as the index has it


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
            parts.append(
                "EXISTS (SELECT FROM checkpoints_run r JOIN checkpoints_plan p ON p.id = r.plan_id"
                " WHERE r.id = g.run_id AND p.agent = %s)"
            )
            values.append(self.agent)
        if self.words.strip():
            words, gate, run = looked_for(self.words, dict(self.people))
            parts.append(f"({MATCHES} OR g.id = %s OR g.run_id = %s)")
            values += [words, gate, run]
        if self.due:
            parts.append("g.deadline <= %s")
            values.append(self.due)
        if self.closed_within:
            parts.append("g.closed_at >= statement_timestamp() - make_interval(secs => %s)")
            values.append(self.closed_within)
        return "".join(f" AND {part}" for part in parts), values
