"""The filters of the figures: a period, what the gates are about, and the part of them that one figure counts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from datetime import date, datetime, time, timedelta
from typing import Any, Self
from urllib.parse import urlencode

from django.utils import timezone

from approvals.models import Gate, Outcome

PERIODS = (7, 30, 90)  # days
MOST = 200  # characters of a name


@dataclass(frozen=True, kw_only=True)
class InsightFilters:
    """The filters in an address; junk is ignored. The second half is the part that one figure counts."""

    days: int = 30
    team: int = 0
    agent: str = ""
    policy: str = ""
    risk: str = ""

    kind: str = ""  # of the outcome
    within: str = ""  # one of durations.SPANS
    day: str = ""  # on which the gate closed, in the reader's zone: YYYY-MM-DD
    field: str = ""  # that people edited, a JSON Pointer with * for places in a list
    rule: str = ""  # that approved by itself, or would have
    sample: bool = False  # of a rule's gates, those that people decided
    person: int = 0  # who decided

    @classmethod
    def from_query(cls, sent: Mapping[str, Any]) -> Self:
        """Read the filters of an address."""
        values = {name: str(sent.get(name, "")).strip()[:MOST] for name in asdict(cls())}
        days = _number(values["days"])
        return cls(
            days=days if days in PERIODS else cls.days,
            team=_number(values["team"]),
            agent=values["agent"],
            policy=values["policy"],
            risk=values["risk"] if values["risk"] in Gate.Risk.values else "",
            kind=values["kind"] if values["kind"] in Outcome.Kind.values else "",
            within=values["within"],
            day=values["day"] if _is_day(values["day"]) else "",
            field=values["field"],
            rule=values["rule"],
            sample=values["sample"] == "True",
            person=_number(values["person"]),
        )

    @property
    def whole(self) -> InsightFilters:
        """Return the filters of the page, without the part of one figure."""
        return replace(self, kind="", within="", day="", field="", rule="", sample=False, person=0)

    @property
    def filtered(self) -> bool:
        """Tell whether anything but the period is chosen."""
        return self.whole != InsightFilters(days=self.days)

    @property
    def first_day(self) -> date:
        """Return the first day of the period, in the reader's zone; the last is today."""
        return timezone.localdate() - timedelta(days=self.days - 1)

    @property
    def since(self) -> datetime:
        """Return the moment at which the period begins."""
        return timezone.make_aware(datetime.combine(self.first_day, time.min))

    def query(self, **part: Any) -> str:
        """Write the filters as an address's query, with the part of one figure."""
        values = asdict(replace(self, **part))
        return urlencode({name: value for name, value in values.items() if value})


def _number(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else 0


def _is_day(text: str) -> bool:
    try:
        return date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False
