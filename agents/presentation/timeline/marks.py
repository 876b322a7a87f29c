"""The marks on the graph: a shape, an icon and a word for each kind of row.

A mark is never the only sign: the row repeats it as a word, and the word carries the state's colour.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from approvals.cards.recovery_answers import RecoveryAnswer


@dataclass(frozen=True, slots=True)
class TimelineMark:
    """One mark: `shape` names the node's style, `status` the word's colour, `icon` stands before the word."""

    shape: str
    status: str
    icon: str
    word: str | Promise


RAN = TimelineMark("ran", "ran", "check", _("ran"))
GIVEN = TimelineMark("ran", "ran", "check", _("given"))
APPROVED = TimelineMark("ran", "approved", "check", _("approved"))
EDITED = TimelineMark("ran", "edited", "pencil", _("approved with an edit"))
MIXED = TimelineMark("ran", "edited", "pencil", _("decided action by action"))
ANSWERED = TimelineMark("ran", "approved", "check", _("answered"))
NOTHING_ASKED = TimelineMark("ran", "ran", "check", _("no question"))
REJECTED = TimelineMark("rejected", "rejected", "x", _("rejected"))
EXPIRED = TimelineMark("ahead", "expired", "clock", _("expired"))
WITHDRAWN = TimelineMark("ahead", "cancelled", "x", _("withdrawn"))
REWIND = TimelineMark("rewind", "edited", "rewind", _("rewound"))
EDIT = TimelineMark("edit", "edited", "pencil", _("edited by hand"))
RECOVERED: dict[str, TimelineMark] = {
    RecoveryAnswer.RETRY: TimelineMark("ran", "edited", "undo", _("to be tried again")),
    RecoveryAnswer.NOT_HAPPENED: TimelineMark("ran", "edited", "undo", _("did not happen, to be done")),
    RecoveryAnswer.AGAIN: TimelineMark("ran", "edited", "undo", _("to be done again")),
    RecoveryAnswer.WITHDRAW: TimelineMark("ran", "edited", "undo", _("earlier runs withdrawn, to be tried again")),
    RecoveryAnswer.SKIP: TimelineMark("ran", "cancelled", "right", _("skipped")),
    RecoveryAnswer.STOP: TimelineMark("failed", "failed", "x", _("stopped")),
    "": TimelineMark("ran", "edited", "play", _("recovered")),
}
ASIDE = TimelineMark("ran", "repair", "ask", _("paused to ask"))
CAUGHT = TimelineMark("failed", "failed", "right", _("failed, continued at another step"))
ASKED = TimelineMark("ran", "ran", "ask", _("asked, and went on"))
REOPENED = TimelineMark("ran", "held", "hold", _("asked again"))
SKIPPED = TimelineMark("ahead", "cancelled", "right", _("skipped"))
REUSED = TimelineMark("reused", "reused", "same", _("reused"))
STOOD = TimelineMark("reused", "reused", "same", _("earlier approval reused"))
UNDONE = TimelineMark("undone", "undone", "undo", _("undone"))
REFUSED = TimelineMark("refused", "rejected", "x", _("refused"))
REPAIR = TimelineMark("repair", "repair", "tool", _("repair"))
UPCAST = TimelineMark("ran", "repair", "right", _("upgraded"))
GONE = TimelineMark("gone", "cancelled", "x", _("removed"))
FORK = TimelineMark("fork", "ahead", "fork", _("fork"))
HELD = TimelineMark("held", "held", "hold", _("held for"))
SETTLING = TimelineMark("run", "running", "undo", _("settling its effects"))
RUNNING = TimelineMark("run", "running", "play", _("running"))
QUEUED = TimelineMark("ahead", "ahead", "clock", _("queued"))
TIMER = TimelineMark("ahead", "waiting", "clock", _("waiting"))
FAILED = TimelineMark("failed", "failed", "warn", _("failed"))
FROZEN = TimelineMark("failed", "failed", "warn", _("frozen"))
CANCELLED = TimelineMark("ahead", "cancelled", "x", _("cancelled"))
AHEAD = TimelineMark("ahead", "ahead", "clock", _("not yet"))
NEVER = TimelineMark("ahead", "ahead", "x", _("did not run"))

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

# The words of the legend, in its order.
LEGEND = {
    "ran": _("ran"),
    "gone": _("removed by retention"),
    "reused": _("reused"),
    "undone": _("undone"),
    "run": _("running"),
    "failed": _("failed"),
    "refused": _("refused"),
    "rejected": _("rejected"),
    "rejected-ran": _("on an abandoned branch"),
    "rewind": _("rewind"),
    "edit": _("edit"),
    "repair": _("repair"),
    "fork": _("fork"),
    "held": _("held"),
    "ahead": _("not yet"),
}


def beside(mark: TimelineMark) -> TimelineMark:
    """Return the mark for an abandoned branch, where a step that ran is drawn fainter."""
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
