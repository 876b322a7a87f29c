"""Refusals of decisions that would do something else than was shown, or repeat an effect without confirmation."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from typing import Any

from django.utils.dateformat import format as date_format

from approvals.errors import DecisionRefused
from approvals.impact import Impact
from approvals.impact.result import Repeat

from . import verbs


class ConsequencesChanged(DecisionRefused):
    """A decision that would do something else than its sender was shown."""

    message = "The effect of your decision changed after you opened this page. Review it, then send again."
    code = "impact_changed"

    def __init__(self, impact: Impact | None, *, last: bool) -> None:
        said = (
            "Somebody approved this after you opened it. Yours is now the last approval needed, so it takes effect at "
            "once. Read what it does, then send it again."
        )
        super().__init__(said if last else "")
        self.impact = impact
        self.last = last  # it was shown as one that does not close the gate

    def facts(self) -> dict[str, Any]:
        return {"last": self.last}


class RejectionStands(DecisionRefused):
    """An approval or an edit of a gate that would close as rejected all the same."""

    code = "rejection_stands"

    def __init__(self, name: str) -> None:
        said = f"{name} rejected this, so your decision would change nothing. Ask them to take it back first."
        super().__init__(said)


class DoneAlready(DecisionRefused):
    """An approval in bulk of what another run has done with the same arguments or key fields."""

    message = "The same was done before. Open the request to see when, and decide it by itself."
    code = "done_already"


class RepeatNotConfirmed(DecisionRefused):
    """A decision that would repeat an effect without confirmation."""

    code = "needs_confirmation"

    def __init__(self, repeats: Sequence[Repeat], *, run: int) -> None:
        self.repeats = list(repeats)
        said = [verbs.told(each, at=_moment(each.at), here=run) for each in self.repeats]
        super().__init__(" ".join([*said, "Confirm that, or choose another decision."]))

    def facts(self) -> dict[str, Any]:
        return {"effects": [each.effect for each in self.repeats]}


def _moment(at: dt.datetime | None) -> str:
    if at is None:
        return ""
    here = at.astimezone(dt.UTC)
    return f"on {date_format(here, 'j M Y')} at {here:%H:%M} UTC"
