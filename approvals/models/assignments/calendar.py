"""Calendars: a team's working hours, its zone and the days off, by which policies count time."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.models import Group
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models.functions import Now


def office_hours() -> dict[str, list[list[str]]]:
    """Return Monday to Friday, nine to five."""
    return {day: [["09:00", "17:00"]] for day in ("mon", "tue", "wed", "thu", "fri")}


class Calendar(models.Model):
    """A team's working hours. A change counts for deadlines and escalations that are planned from then on."""

    team = models.ForeignKey(Group, on_delete=models.PROTECT, related_name="+", db_index=False)
    name = models.SlugField(max_length=60, db_index=False)
    zone = models.CharField("time zone", max_length=60, default="UTC", help_text="Such as Europe/Berlin.")
    hours = models.JSONField("working hours", default=office_hours)  # {"mon": [["09:00", "17:00"]]}
    country = models.CharField(
        "public holidays of", max_length=8, default="", blank=True,
        help_text="A country, such as DE, or DE-BY for a part of it. Empty: none.",
    )  # fmt: skip
    days_off = ArrayField(models.DateField(), default=list, db_default=[], blank=True)
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [models.UniqueConstraint(fields=["team", "name"], name="calendar_name_is_taken_once")]

    def __str__(self) -> str:
        return self.name

    @property
    def facts(self) -> dict[str, Any]:
        """Return what its event keeps."""
        off = [day.isoformat() for day in self.days_off]
        said = {name: getattr(self, name) for name in ("name", "zone", "hours", "country")}
        return {**said, "days_off": off}
