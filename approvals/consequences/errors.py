"""Why a decision did not count: it would have done something else than its sender was shown, or has to confirm."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from typing import Any

from approvals.errors import DecisionRefused
from approvals.impact import Impact
from approvals.impact.result import Repeat

from . import sentences


class ConsequencesChanged(DecisionRefused):
    """What your decision would do changed since you looked; read what it would do now, then send it again."""

    code = "impact_changed"

    def __init__(self, impact: Impact | None, *, last: bool) -> None:
        said = (
            "Somebody approved this after you opened it. Yours is now the last approval needed, so it takes effect at "
            "once. Read what it does, then send it again."
        )
        super().__init__(said if last else "")
        self.impact = impact
        self.last = last  # it was shown as one after which others still have to agree

    def facts(self) -> dict[str, Any]:
        return {"last": self.last}


class RepeatNotConfirmed(DecisionRefused):
    """This would do once more what was already done; confirm that, or decide otherwise."""

    code = "needs_confirmation"

    def __init__(self, repeats: Sequence[Repeat], *, run: int) -> None:
        self.repeats = list(repeats)
        said = [sentences.told(each, at=_moment(each.at), here=run) for each in self.repeats]
        super().__init__(" ".join([*said, "Confirm that, or decide otherwise."]))

    def facts(self) -> dict[str, Any]:
        return {"effects": [each.effect for each in self.repeats]}


def _moment(at: dt.datetime | None) -> str:
    return at.astimezone(dt.UTC).strftime("on %-d %b %Y at %H:%M UTC") if at else ""
