"""Lists the effects that a choice would repeat as boxes to tick, one an action, with what was done before and when."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby

from django.utils import timezone

from approvals.consequences import sentences
from approvals.impact.result import Repeat

from .times import say


@dataclass(frozen=True, kw_only=True)
class RepeatBox:
    """One box to confirm. `said` and `label` hold the agent's own title: data, never markup."""

    value: str  # the ids of the effects that it confirms
    said: Sequence[str]
    label: str
    ticked: bool
    missing: bool  # the decision was sent without it


def ticks(
    repeats: Sequence[Repeat], *, run: int, doing: str, ticked: Collection[int] = (), missing: Collection[int] = ()
) -> list[RepeatBox]:
    """List the boxes by action, in the actions' order. `ticked` and `missing` are ids of effects."""
    return [
        RepeatBox(
            value=",".join(str(each.effect) for each in same),
            said=[sentences.told(each, at=moment(each.at), here=run, doing=doing) for each in same],
            label=sentences.again(same[0]),
            ticked=all(each.effect in ticked for each in same),
            missing=any(each.effect in missing for each in same),
        )
        for same in (list(found) for key, found in groupby(repeats, key=lambda each: (each.step, each.action)))
    ]


def moment(at: datetime | None) -> str:
    """Write `at 16:18`, or `on 21 Nov, 16:18` where that was another day, in the reader's zone."""
    if at is None:
        return ""
    today = timezone.localtime(at).date() == timezone.localtime().date()
    if today:
        return f"at {say(at, 'clock')}"
    return f"on {say(at, 'moment')}"
