"""The levels of a policy's escalation: to which team a gate goes when, if nobody has decided by then.

Stored with the policy's version as `[{"team": 7, "after": 3600, "extend": null}, ...]`, times in seconds. A level comes
`after` a time since the gate opened, or at the deadline where that is null; then it moves the deadline by `extend`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.contrib.auth.models import Group

from approvals.models import Escalation, Gate, Policy
from checkpoints.admin.durations import spell_duration

from . import calendars

MOST = 9  # levels


@dataclass(frozen=True)
class Level:
    """One level."""

    team: int
    after: timedelta | None  # since the gate opened; None: at the deadline
    extend: timedelta | None = None  # for how long a level at the deadline moves that

    def to_json(self) -> dict[str, Any]:
        """Return it as a policy stores it."""
        return {"team": self.team, "after": _seconds(self.after), "extend": _seconds(self.extend)}


def levels(policy: Policy) -> list[Level]:
    """Return the policy's levels, in order."""
    return [Level(each["team"], _span(each["after"]), _span(each["extend"])) for each in policy.escalation]


def lines(stored: Iterable[Mapping[str, Any]]) -> list[str]:
    """Write stored levels as people type them: `Directors after 2 h`, `Directors at the deadline, 4 h more`."""
    found = list(stored)
    names = dict(Group.objects.filter(pk__in=[each["team"] for each in found]).values_list("pk", "name"))
    return [_line(names.get(each["team"], str(each["team"])), each) for each in found]


def _line(team: str, stored: Mapping[str, Any]) -> str:
    if stored["after"] is not None:
        return f"{team} after {spell_duration(timedelta(seconds=stored['after']))}"
    more = stored["extend"]
    return f"{team} at the deadline" + (f", {spell_duration(timedelta(seconds=more))} more" if more else "")


def planned(policy: Policy, gate: Gate, at: datetime) -> Iterator[Escalation]:
    """Return the escalations to plan for a gate that opens at this moment."""
    for number, level in enumerate(levels(policy), 1):
        due = None if level.after is None else calendars.after(policy, at, level.after)
        yield Escalation(
            gate=gate, number=number, team_id=level.team, due_at=due, extend=level.extend,
            status=Escalation.Status.PLANNED, planned_at=at,
        )  # fmt: skip


def _seconds(span: timedelta | None) -> int | None:
    return None if span is None else int(span.total_seconds())


def _span(seconds: int | None) -> timedelta | None:
    return None if seconds is None else timedelta(seconds=seconds)
