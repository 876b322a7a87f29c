"""Who may see the audit, and of which teams.

Members who may view a team's runs see its events, which its runs' pages tell of anyway. Who holds `view_audit` in a
team sees them without its runs, and may have the seals verified and take events elsewhere. Staff with the permission
to view events sees those of every team and of none.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.contrib.auth.models import Group, User
from django.db.models import QuerySet

from checkpoints.access.permissions import everywhere, teams_where
from checkpoints.events.event import EventQuerySet
from checkpoints.models import Event

AUDIT = "checkpoints.view_audit"
RUNS = "checkpoints.view_run"
ERASE = "checkpoints.erase_text"


@dataclass(frozen=True)
class AuditReader:
    """What one person may see: `teams`, or all where `everything`; and whether they may verify and export."""

    user: User
    everything: bool
    teams: frozenset[int]
    audits: frozenset[int]

    @property
    def may_see(self) -> bool:
        return self.everything or bool(self.teams)

    @property
    def may_audit(self) -> bool:
        """Tell whether they may have the seals verified, and export what they see in the teams that they audit."""
        return self.everything or bool(self.audits)

    def events(self) -> list[EventQuerySet]:
        """List the events that they may see, a team at a time: each is then in order along an index of its own."""
        told = Event.objects.told()
        return [told] if self.everything else [told.filter(team_id=team) for team in sorted(self.teams)]

    def audited(self) -> EventQuerySet:
        """Return the events that they may export."""
        told = Event.objects.told()
        return told if self.everything else told.filter(team_id__in=sorted(self.audits))

    def sees(self, event: Event) -> bool:
        return self.everything or event.team_id in self.teams


def reader(user: User) -> AuditReader:
    """Return what this person may see now."""
    if of_all(user):
        return AuditReader(user, True, frozenset(), frozenset())
    audits = frozenset(teams_where(user, AUDIT).values_list("pk", flat=True))
    return AuditReader(user, False, audits | frozenset(teams_where(user, RUNS).values_list("pk", flat=True)), audits)


def of_all(user: User) -> bool:
    """Tell whether they see the events of every team, and of none."""
    return everywhere(user, "checkpoints.view_event")


def teams_of(user: Any) -> QuerySet[Group]:
    """Return the teams whose events they see."""
    return teams_where(user, AUDIT) | teams_where(user, RUNS)
