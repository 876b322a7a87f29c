"""The marks on the graph: a shape, an icon and a word for each way a row can be.

A mark is never the only sign: the row repeats it as a word, and the word carries the state's colour.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from approvals.cards.recovery_answers import RecoveryAnswer


@dataclass(frozen=True, slots=True)
class Mark:
    """`shape` names the node's style, `status` the word's colour, `icon` stands before the word."""

    shape: str
    status: str
    icon: str
    word: str


RAN = Mark("ran", "ran", "check", "ran")
GIVEN = Mark("ran", "ran", "check", "given")
APPROVED = Mark("ran", "approved", "check", "approved")
EDITED = Mark("ran", "edited", "pencil", "approved with an edit")
MIXED = Mark("ran", "edited", "pencil", "decided action by action")
ANSWERED = Mark("ran", "approved", "check", "answered")
NOTHING_ASKED = Mark("ran", "ran", "check", "nothing to ask")
REJECTED = Mark("rejected", "rejected", "x", "rejected")
EXPIRED = Mark("ahead", "expired", "clock", "expired")
WITHDRAWN = Mark("ahead", "cancelled", "x", "withdrawn")
REWIND = Mark("rewind", "edited", "rewind", "rewound")
EDIT = Mark("edit", "edited", "pencil", "edited by hand")
RECOVERED: dict[str, Mark] = {
    RecoveryAnswer.RETRY: Mark("ran", "edited", "undo", "to be tried again"),
    RecoveryAnswer.NOT_HAPPENED: Mark("ran", "edited", "undo", "did not happen, to be done"),
    RecoveryAnswer.AGAIN: Mark("ran", "edited", "undo", "to be done again"),
    RecoveryAnswer.SKIP: Mark("ran", "cancelled", "right", "skipped"),
    RecoveryAnswer.STOP: Mark("failed", "failed", "x", "stopped"),
    "": Mark("ran", "edited", "play", "recovered"),
}
ASIDE = Mark("ran", "repair", "ask", "stepped aside to ask")
CAUGHT = Mark("failed", "failed", "right", "failed, and caught")
REOPENED = Mark("ran", "held", "hold", "asked again")
SKIPPED = Mark("ahead", "cancelled", "right", "skipped")
REUSED = Mark("reused", "reused", "same", "reused")
STOOD = Mark("reused", "reused", "same", "its answer stands")
UNDONE = Mark("undone", "undone", "undo", "undone")
REFUSED = Mark("refused", "rejected", "x", "refused")
REPAIR = Mark("repair", "repair", "tool", "repair")
UPCAST = Mark("ran", "repair", "right", "brought up")
GONE = Mark("gone", "cancelled", "x", "removed")
FORK = Mark("fork", "ahead", "fork", "fork")
HELD = Mark("held", "held", "hold", "held for")
SETTLING = Mark("run", "running", "undo", "settling its effects")
RUNNING = Mark("run", "running", "play", "running")
QUEUED = Mark("ahead", "ahead", "clock", "queued")
TIMER = Mark("ahead", "waiting", "clock", "waiting")
FAILED = Mark("failed", "failed", "warn", "failed")
FROZEN = Mark("failed", "failed", "warn", "frozen")
CANCELLED = Mark("ahead", "cancelled", "x", "cancelled")
AHEAD = Mark("ahead", "ahead", "clock", "not yet")
NEVER = Mark("ahead", "ahead", "x", "did not run")

OUTCOMES = {
    "approved": APPROVED,
    "edited": EDITED,
    "mixed": MIXED,
    "answered": ANSWERED,
    "rejected": REJECTED,
    "expired": EXPIRED,
    "withdrawn": WITHDRAWN,
}

RADIUS = {"fork": 4.5, "ahead": 5.0, "gone": 4.0} | dict.fromkeys(
    ("rewind", "edit", "rejected", "failed", "undone", "refused", "repair"), 6.5
)

# What the legend says about a shape, in the order in which it says it.
LEGEND = {
    "ran": "ran",
    "gone": "removed by retention",
    "reused": "reused",
    "undone": "undone",
    "run": "running",
    "failed": "failed",
    "refused": "refused",
    "rejected": "rejected",
    "rejected-ran": "left behind",
    "rewind": "rewind",
    "edit": "edit",
    "repair": "repair",
    "fork": "fork",
    "held": "held",
    "ahead": "not yet",
}


def beside(mark: Mark) -> Mark:
    """Return the same mark on a branch that was left: what ran there is drawn fainter."""
    return replace(mark, shape="rejected-ran") if mark.shape == "ran" else mark


def radius(shape: str) -> float:
    """Return the node's radius in px."""
    return RADIUS.get(shape, 5.5)


def glyph(shape: str, x: int, y: int = 18) -> str:
    """Return the sign inside the node at `x`, `y`, as SVG path data; empty where there is none."""
    back = f"M{x + 3:g} {y}h-6m2.4-2.4-2.4 2.4 2.4 2.4"
    signs = {
        "rejected": f"m{x - 2.3:g} {y - 2.3:g} 4.6 4.6m0-4.6-4.6 4.6",
        "rewind": back,
        "repair": back,
        "undone": back,
        "edit": f"m{x - 2.4:g} {y + 2.4:g} 4.8-4.8",
        "reused": f"M{x - 2.2:g} {y - 1.3:g}h4.4m-4.4 2.6h4.4",
        "refused": f"M{x - 3:g} {y}h6",
        "failed": f"M{x:g} {y - 3.2:g}v3.6m0 2.6v.1",
    }
    return signs.get(shape, "")


TONES = {
    "rejected": "on", "rewind": "pen", "edit": "pen", "failed": "stop", "undone": "stop", "refused": "stop",
    "repair": "ink",
}  # fmt: skip
