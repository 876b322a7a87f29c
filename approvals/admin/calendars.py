"""Calendars: a team's working hours, zone and days off, by which its policies count time."""

from __future__ import annotations

import re
from datetime import date
from typing import Any
from zoneinfo import ZoneInfo, available_timezones

from django import forms
from django.contrib import admin
from django.db import models
from django.http import HttpRequest
from django.utils import timezone

from approvals.models import Calendar
from approvals.models.assignments.calendar import office_hours
from approvals.policy.working_time import DAYS, public_holidays, read_hours
from approvals.policy_changes import changes
from checkpoints import actors
from checkpoints.admin.base import ModelAdmin, ModelForm
from checkpoints.events import event_log

from .policies import ForPolicyWriters

_RANGE = re.compile(r"(\w+)(?:-(\w+))?$")


class Hours(forms.CharField):
    """Working hours, a line for a day or several: "mon-fri 09:00-12:00 13:00-17:00"."""

    def __init__(self, **options: Any) -> None:
        super().__init__(widget=forms.Textarea(attrs={"rows": 5, "cols": 50}), **options)

    def prepare_value(self, value: Any) -> Any:
        """Write stored hours, a line for each day."""
        if not isinstance(value, dict):
            return value
        lines = [(day, " ".join("-".join(span) for span in value[day])) for day in DAYS if value.get(day)]
        return "\n".join(f"{day} {spans}" for day, spans in lines)

    def to_python(self, value: Any) -> Any:
        """Read the lines. Raises ValidationError, which says what is wrong."""
        found: dict[str, list[list[str]]] = {}
        for line in str(value or "").lower().splitlines():
            days, *spans = line.split() or [""]
            for day in _days(days) if days else ():
                found.setdefault(day, []).extend(span.split("-") for span in spans)
        try:
            read_hours(found)
        except ValueError as wrong:
            raise forms.ValidationError(f"Write hours such as “mon-fri 09:00-17:00”: {wrong}.") from wrong
        return found


def _days(words: str) -> list[str]:
    named = _RANGE.match(words)
    first, last = (named[1], named[2] or named[1]) if named else (words, words)
    if first not in DAYS or last not in DAYS or DAYS.index(first) > DAYS.index(last):
        return [words]  # the reader of hours says that it is no day
    return list(DAYS[DAYS.index(first) : DAYS.index(last) + 1])


class DaysOff(forms.CharField):
    """Dates, one a line: 2026-12-24."""

    def __init__(self, **options: Any) -> None:
        super().__init__(widget=forms.Textarea(attrs={"rows": 5, "cols": 50}), required=False, **options)

    def prepare_value(self, value: Any) -> Any:
        """Write stored dates, one a line."""
        return "\n".join(item.isoformat() for item in value) if isinstance(value, list) else value

    def to_python(self, value: Any) -> Any:
        """Read the dates, sorted."""
        try:
            return sorted({date.fromisoformat(word) for word in str(value or "").replace(",", " ").split()})
        except ValueError as wrong:
            raise forms.ValidationError("Write dates such as 2026-12-24, one a line.") from wrong


class CalendarForm(ModelForm[Calendar]):
    """The form of a calendar."""

    hours = Hours(
        label="Working hours", initial=office_hours,
        help_text="A line for a day or several, such as “mon-fri 09:00-12:00 13:00-17:00”.",
    )  # fmt: skip
    days_off = DaysOff(
        label="Own days off", help_text="Dates beside the public holidays, one a line, such as 2026-12-24."
    )

    class Meta:
        model = Calendar
        fields = ("team", "name", "zone", "hours", "country", "days_off")

    def clean_zone(self) -> str:
        """Refuse a zone that is not known."""
        zone = str(self.cleaned_data["zone"])
        if zone not in available_timezones():
            raise forms.ValidationError("There is no such zone. Write one such as Europe/Berlin.")
        return ZoneInfo(zone).key

    def clean_country(self) -> str:
        """Refuse a country whose holidays are not known."""
        country = str(self.cleaned_data["country"] or "").upper()
        try:
            if country:
                public_holidays(country, timezone.localdate().year)
        except NotImplementedError as unknown:
            raise forms.ValidationError(
                f"The holidays of {country} are not known. Write a country such as DE, or a part such as DE-BY."
            ) from unknown
        return country

    def clean(self) -> dict[str, Any]:
        """Refuse to move deadlines that approve, or escalations: a new version may, which a second person confirms."""
        data = super().clean() or self.cleaned_data
        moved = {"zone", "hours", "country", "days_off"} & set(self.changed_data)
        used = changes.acting_by(self.instance) if self.instance.pk and moved else []
        if used:
            words = (
                f"{', '.join(used)} would approve or escalate at another time, in force, with open gates or "
                "in a change that waits. Make a new calendar and name it in a new version of the policy, "
                "which a second person confirms."
            )
            raise forms.ValidationError(words)
        return data


@admin.register(Calendar)
class CalendarAdmin(ForPolicyWriters, ModelAdmin[Calendar]):
    """Calendars. A change counts for what is planned from then on: open gates keep their times."""

    form = CalendarForm
    list_display = ("name", "team", "zone", "country")
    list_filter = ("team",)
    list_select_related = ("team",)
    ordering = ("team__name", "name")
    search_fields = ("name", "team__name")
    actions = None

    def get_readonly_fields(self, request: HttpRequest, obj: Calendar | None = None) -> tuple[str, ...]:
        """Fix whose it is."""
        return ("team",) if obj else ()

    def has_add_permission(self, request: HttpRequest) -> bool:
        return self.has_view_permission(request)

    def has_change_permission(self, request: HttpRequest, obj: models.Model | None = None) -> bool:
        return self.has_view_permission(request)

    def has_delete_permission(self, request: HttpRequest, obj: models.Model | None = None) -> bool:
        """Refuse: versions of policies refer to it."""
        return False

    def save_model(self, request: HttpRequest, obj: Calendar, form: Any, change: bool) -> None:
        """Save it with its event."""
        super().save_model(request, obj, form, change)
        event_log.record(
            "calendar.changed", subject=f"calendar:{obj.pk}", by=actors.of_user(request.user), team_id=obj.team_id,
            data=obj.facts,
        )  # fmt: skip
