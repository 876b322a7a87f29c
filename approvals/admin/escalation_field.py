"""The form field for a policy's escalation: a line for each level, as people write it."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

from django import forms
from django.contrib.auth.models import Group

from approvals.policy.escalation import MOST, Level, lines
from checkpoints.admin.durations import parse_duration

HELP = (
    "A line for each level, such as “Directors after 2 h” or “Directors at the deadline, 4 h more”. The team's people "
    "then decide, too. After the last level the deadline does what is chosen above."
)
_LINE = re.compile(
    r"(?P<team>.+?)\s+(?:after\s+(?P<after>.+)|at the deadline(?:,\s*(?P<more>.+?)\s+more)?)\s*$",
    re.IGNORECASE,
)
_LEAST = timedelta(minutes=1)


class EscalationField(forms.CharField):
    """Levels of an escalation, stored as approvals.policy.escalation says."""

    def __init__(self, **options: Any) -> None:
        box = forms.Textarea(attrs={"rows": 3, "cols": 60})
        super().__init__(required=False, label="Escalation", help_text=HELP, widget=box, **options)

    def prepare_value(self, value: Any) -> Any:
        """Write stored levels, a line for each; typed text unchanged."""
        if not isinstance(value, list):
            return value
        return "\n".join(lines(value))

    def to_python(self, value: Any) -> Any:
        """Read the lines. Raises ValidationError, which says what is wrong."""
        typed = [line.strip() for line in str(value or "").splitlines() if line.strip()]
        if len(typed) > MOST:
            raise forms.ValidationError(f"Write at most {MOST} levels.")
        return [_level(line).to_json() for line in typed]

    def has_changed(self, initial: Any, data: Any) -> bool:
        """Tell whether the levels differ, however they are written."""
        try:
            return bool(self.to_python(data) != (initial or []))
        except forms.ValidationError:
            return True


def _level(line: str) -> Level:
    found = _LINE.match(line)
    if found is None:
        raise forms.ValidationError(f"“{line}” names no team and time. {HELP}")
    team = Group.objects.filter(name=found["team"]).first()
    if team is None:
        raise forms.ValidationError(f"There is no team {found['team']}.")
    return Level(team.pk, _span(found["after"]), _span(found["more"]))


def _span(words: str | None) -> timedelta | None:
    if words is None:
        return None
    span = parse_duration(words)
    if span is None or span < _LEAST:
        raise forms.ValidationError(f"“{words}” is no duration of a minute or more.")
    return span
