"""The marks on the graph: a shape, an icon and a word for each kind of row.

A mark is never the only sign: the row repeats it as a word, and the word carries the state's colour.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from agents.effects.fates import TimelineMark
from approvals.cards.answer import RecoveryAnswer

RAN = TimelineMark("ran", "ran", "check", "ran")
GIVEN = TimelineMark("ran", "ran", "check", "given")
APPROVED = TimelineMark("ran", "approved", "check", "approved")
EDITED = TimelineMark("ran", "edited", "pencil", "approved with an edit")
MIXED = TimelineMark("ran", "edited", "pencil", "decided action by action")
ANSWERED = TimelineMark("ran", "approved", "check", "answered")
NOTHING_ASKED = TimelineMark("ran", "ran", "check", "no question")
REJECTED = TimelineMark("rejected", "rejected", "x", "rejected")
EXPIRED = TimelineMark("ahead", "expired", "clock", "expired")
WITHDRAWN = TimelineMark("ahead", "cancelled", "x", "withdrawn")
REWIND = TimelineMark("rewind", "edited", "rewind", "rewound")
EDIT = TimelineMark("edit", "edited", "pencil", "edited by hand")
RECOVERED: dict[str, TimelineMark] = {
    RecoveryAnswer.RETRY: TimelineMark("ran", "edited", "undo", "to be tried again"),
    RecoveryAnswer.NOT_HAPPENED: TimelineMark("ran", "edited", "undo", "did not happen, to be done"),
    RecoveryAnswer.AGAIN: TimelineMark("ran", "edited", "undo", "to be done again"),
    RecoveryAnswer.WITHDRAW: TimelineMark("ran", "edited", "undo", "earlier runs withdrawn, to be tried again"),
    RecoveryAnswer.SKIP: TimelineMark("ran", "cancelled", "right", "skipped"),
    RecoveryAnswer.STOP: TimelineMark("failed", "failed", "x", "stopped"),
    "": TimelineMark("ran", "edited", "play", "recovered"),
}
ASIDE = TimelineMark("ran", "repair", "ask", "paused to ask")
CAUGHT = TimelineMark("failed", "failed", "right", "failed, continued at another step")
ASKED = TimelineMark("ran", "ran", "ask", "asked, and went on")
REOPENED = TimelineMark("ran", "held", "hold", "asked again")
SKIPPED = TimelineMark("ahead", "cancelled", "right", "skipped")
REUSED = TimelineMark("reused", "reused", "same", "reused")
STOOD = TimelineMark("reused", "reused", "same", "earlier approval reused")
UNDONE = TimelineMark("undone", "undone", "undo", "undone")
REFUSED = TimelineMark("refused", "rejected", "x", "refused")
REPAIR = TimelineMark("repair", "repair", "tool", "repair")
UPCAST = TimelineMark("ran", "repair", "right", "upgraded")
GONE = TimelineMark("gone", "cancelled", "x", "removed")
FORK = TimelineMark("fork", "ahead", "fork", "fork")
HELD = TimelineMark("held", "held", "hold", "held for")
SETTLING = TimelineMark("run", "running", "undo", "settling its effects")
RUNNING = TimelineMark("run", "running", "play", "running")
QUEUED = TimelineMark("ahead", "ahead", "clock", "queued")
TIMER = TimelineMark("ahead", "waiting", "clock", "waiting")
FAILED = TimelineMark("failed", "failed", "warn", "failed")
FROZEN = TimelineMark("failed", "failed", "warn", "frozen")
CANCELLED = TimelineMark("ahead", "cancelled", "x", "cancelled")
AHEAD = TimelineMark("ahead", "ahead", "clock", "not yet")
NEVER = TimelineMark("ahead", "ahead", "x", "did not run")

OUTCOMES = {
    "approved": APPROVED,
    "edited": EDITED,
    "mixed": MIXED,
    "answered": ANSWERED,
    "rejected": REJECTED,
    "expired": EXPIRED,
    "withdrawn": WITHDRAWN,
}

# Of a node in px, where it is not 5.5.
RADIUS = {"fork": 4.5, "ahead": 5.0, "gone": 4.0} | dict.fromkeys(
    ("rewind", "edit", "rejected", "failed", "undone", "refused", "repair"), 6.5
)

# The words of the legend, in its order.
LEGEND = {
    "ran": "ran",
    "gone": "removed by retention",
    "reused": "reused",
    "undone": "undone",
    "run": "running",
    "failed": "failed",
    "refused": "refused",
    "rejected": "rejected",
    "rejected-ran": "on an abandoned branch",
    "rewind": "rewind",
    "edit": "edit",
    "repair": "repair",
    "fork": "fork",
    "held": "held",
    "ahead": "not yet",
}
TONES = {
    "rejected": "on", "rewind": "pen", "edit": "pen", "failed": "stop", "undone": "stop", "refused": "stop",
    "repair": "ink",
}  # fmt: skip


def abandoned_mark(mark: TimelineMark) -> TimelineMark:
    """Return the mark for an abandoned branch, where a step that ran is drawn fainter."""
    return replace(mark, shape="rejected-ran") if mark.shape == "ran" else mark


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


def format_duration(span: timedelta) -> str:
    """Return `span` in at most two units: "< 1 ms", "7 ms", "0.4 s", "21 min 38 s", "3 h 5 min"."""
    seconds = max(span.total_seconds(), 0.0)
    if seconds < 0.001:
        return f"< {1} ms"
    if seconds < 0.0995:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    for size, unit, small, small_unit in ((86_400, "d", 3_600, "h"), (3_600, "h", 60, "min"), (60, "min", 1, "s")):
        if whole >= size:
            rest = whole % size // small
            return f"{whole // size} {unit} {rest} {small_unit}" if rest else f"{whole // size} {unit}"
    return f"{whole} s"
