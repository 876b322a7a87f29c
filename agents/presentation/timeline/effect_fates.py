"""What became of each effect: one word for it, and what there is to add. The timeline and the table both read this.

A row of the ledger says what happened in the outside world; whether the run still counts on it follows from the path
to its head. An undo has a row of its own, which is told with the effect that it undoes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from .facts import Done
from .marks import Mark
from .remarks import Remark

DONE = Mark("", "done", "check", "done")
UNDOABLE = replace(DONE, word="done, can be undone")
FINAL = Mark("", "unknown", "oneway", "done, cannot be undone")
UNDONE = Mark("", "undone", "undo", "undone")
KEPT = Mark("", "cancelled", "oneway", "left as it is")
LOST = Mark("", "unknown", "oneway", "off the path, cannot be undone")
DUE = Mark("", "held", "undo", "off the path, will be undone")
LEFT = Mark("", "held", "undo", "off the path, will be left as it is")
DOUBT = Mark("", "unknown", "unknown", "unknown: it may have happened")
STATES = {
    "intended": Mark("", "waiting", "clock", "intended, not recorded yet"),
    "failed": Mark("", "failed", "x", "failed, provably not done"),
    "unknown": DOUBT,
    "abandoned": Mark("", "cancelled", "unknown", "unknown, and done again by order"),
    "undone": UNDONE,
    "kept": KEPT,
}


@dataclass(frozen=True, slots=True)
class Fate:
    """One effect with its undos and the checkpoints that took its result over, and what is said of it."""

    effect: Done
    undos: tuple[Done, ...] = ()
    reused: tuple[int, ...] = ()  # numbers of checkpoints

    @property
    def mark(self) -> Mark:
        """Return the mark, with the word for what became of the effect."""
        done = self.effect
        if done.left_open:
            return replace(KEPT, word="may have happened; left open", status="unknown")
        if done.status == "kept" and done.irreversible:
            return replace(KEPT, word="left, cannot be undone", status="unknown")
        if done.status != "done":
            return STATES.get(done.status, Mark("", "ahead", "unknown", done.status))
        if not done.unsettled:
            return FINAL if done.irreversible else UNDOABLE if done.undo else DONE
        return LOST if done.irreversible else DUE if done.undo and not done.taken_from else LEFT

    @property
    def undone(self) -> Done | None:
        """Return the undo of it that succeeded; None where none did."""
        if self.effect.status != "undone":
            return None
        return next((undo for undo in reversed(self.undos) if undo.status == "done"), None)

    def remarks(self) -> Iterator[Remark]:
        """Yield what there is to add to the word, one line each."""
        done = self.effect
        if done.taken_from:
            yield Remark(f"taken over from {done.taken_from}, nothing was sent")
        if self.reused:
            yield Remark(f"its result was reused at {', '.join(map(str, self.reused))}")
        if done.generation:
            yield Remark(f"done anew, generation {done.generation}")
        if done.again and done.status == "done":
            yield Remark("to be done anew: a person sent the run back to it")
        if done.error:
            yield Remark(quote=done.error)
        yield from self._of_undos()

    def _of_undos(self) -> Iterator[Remark]:
        for undo in self.undos:
            by = "its undo"
            if undo.status == "done":
                yield Remark(f"by {by} under the key {undo.key[:8]}, at", at=undo.at)
            elif undo.status == "failed":
                yield Remark(f"{by} failed, and nothing was taken back:", undo.error, undo.at)
            elif undo.status == "abandoned":
                yield Remark(f"nobody knows what {by} did; it was ordered again")
            else:
                unknown = undo.status == "unknown"
                yield Remark(f"nobody knows yet whether {by} happened" if unknown else f"{by} is under way")


def fates(effects: Sequence[Done], reused: dict[str, list[int]] | None = None) -> list[Fate]:
    """Return the effects in the order in which they were intended, each with its undos.

    `reused` maps what was executed to the checkpoints that took its result over.
    """
    undos: dict[int, list[Done]] = {}
    for row in effects:
        if row.undoes:
            undos.setdefault(row.undoes, []).append(row)
    newest = {row.execution: row.id for row in effects if row.execution and not row.undoes}
    return [
        Fate(row, tuple(undos.get(row.id, ())), tuple(_adopted(row, newest, reused or {})))
        for row in effects
        if not row.undoes
    ]


def _adopted(row: Done, newest: dict[str, int], reused: dict[str, list[int]]) -> list[int]:
    """Return the checkpoints that took the result over: only the newest generation ever is."""
    if row.status not in ("done", "kept") or newest.get(row.execution) != row.id:
        return []
    return reused.get(row.execution, [])
