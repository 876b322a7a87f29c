"""The fate of each effect: one word for it, and remarks. Timeline, tables and the API read this.

A row of the ledger holds what happened in the outside world; whether the run still counts on it follows from the path
to its head. An undo has a row of its own, which is shown with the effect that it undoes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from agents.effects.ledger import LedgerRow


@dataclass(frozen=True, slots=True)
class TimelineMark:
    """One mark: `shape` names the node's style, `status` the word's colour, `icon` stands before the word."""

    shape: str
    status: str
    icon: str
    word: str


@dataclass(frozen=True, slots=True)
class Remark:
    """Own words, then a time, then a quote of somebody else (untrusted); or any of them alone."""

    text: str = ""
    quote: str = ""
    at: datetime | None = None

    def __bool__(self) -> bool:
        return bool(self.text or self.quote or self.at)


DONE = TimelineMark("", "done", "check", "done")
UNDOABLE = replace(DONE, word="done, can be undone")
FINAL = TimelineMark("", "unknown", "oneway", "done, cannot be undone")
UNDONE = TimelineMark("", "undone", "undo", "undone")
KEPT = TimelineMark("", "cancelled", "oneway", "kept")
LOST = TimelineMark("", "unknown", "oneway", "from an abandoned branch; cannot be undone")
DUE = TimelineMark("", "held", "undo", "from an abandoned branch; will be undone")
LEFT = TimelineMark("", "held", "undo", "from an abandoned branch; kept")
DOUBT = TimelineMark("", "unknown", "unknown", "unknown: it may have happened")
STATES = {
    "intended": TimelineMark("", "waiting", "clock", "begun, result not recorded yet"),
    "failed": TimelineMark("", "failed", "x", "failed, confirmed not executed"),
    "unknown": DOUBT,
    "abandoned": TimelineMark("", "cancelled", "unknown", "unknown, and ordered again"),
    "undone": UNDONE,
    "kept": KEPT,
}


@dataclass(frozen=True, slots=True)
class Fate:
    """One effect with its undos, the checkpoints that reused its result, and the words for it."""

    effect: LedgerRow
    undos: tuple[LedgerRow, ...] = ()
    reused: tuple[int, ...] = ()  # numbers of checkpoints

    @property
    def mark(self) -> TimelineMark:
        """Return the mark, with the word for the effect's fate."""
        done = self.effect
        if done.left_open:
            return replace(KEPT, word="may have happened; left open", status="unknown")
        if done.status == "kept" and done.irreversible:
            return replace(KEPT, word="kept, cannot be undone", status="unknown")
        if done.status != "done":
            return STATES.get(done.status, TimelineMark("", "ahead", "unknown", done.status))
        if not done.unsettled:
            return FINAL if done.irreversible else UNDOABLE if done.undo else DONE
        return LOST if done.irreversible else DUE if done.undo and not done.taken_from else LEFT

    @property
    def undone(self) -> LedgerRow | None:
        """Return the undo that succeeded, or None."""
        if self.effect.status != "undone":
            return None
        return next((undo for undo in reversed(self.undos) if undo.status == "done"), None)

    def remarks(self) -> Iterator[Remark]:
        """Yield the remarks on the word, one line each."""
        done = self.effect
        if done.taken_from:
            yield Remark(f"reused from R-{done.taken_from}, nothing was sent")
        if self.reused:
            yield Remark(f"its result was reused at {', '.join(map(str, self.reused))}")
        if done.generation:
            yield Remark(f"performed again, generation {done.generation}")
        if done.again and done.status == "done":
            yield Remark("will be performed again: a person sent the run back to it")
        if done.error:
            yield Remark(quote=done.error)
        yield from self._of_undos()

    def _of_undos(self) -> Iterator[Remark]:
        for undo in self.undos:
            if undo.status == "done":
                yield Remark(f"by its undo under the key {undo.key[:8]}, at", at=undo.at)
            elif undo.status == "failed":
                yield Remark("its undo failed, and nothing was undone:", undo.error, undo.at)
            elif undo.status == "abandoned":
                yield Remark("the result of its undo is unknown; the undo was ordered again")
            else:
                yield Remark("the result of its undo is unknown" if undo.status == "unknown" else "its undo is running")


def fates_of(effects: Sequence[LedgerRow], reused: dict[str, list[int]] | None = None) -> list[Fate]:
    """Return the effects in the order in which they were intended, each with its undos.

    `reused` maps an execution to the checkpoints that reused its result.
    """
    undos: dict[int, list[LedgerRow]] = {}
    for row in effects:
        if row.undoes:
            undos.setdefault(row.undoes, []).append(row)
    newest = {row.execution: row.id for row in effects if row.execution and not row.undoes}
    return [
        Fate(row, tuple(undos.get(row.id, ())), tuple(_adopted(row, newest, reused or {})))
        for row in effects
        if not row.undoes
    ]


def _adopted(row: LedgerRow, newest: dict[str, int], reused: dict[str, list[int]]) -> list[int]:
    """Return the checkpoints that reused the result, which only the newest generation's can be."""
    if row.status not in ("done", "kept") or newest.get(row.execution) != row.id:
        return []
    return reused.get(row.execution, [])
