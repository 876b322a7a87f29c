"""Access to the audit: the teams whose events a person may see, and those whose events they may export.

Members who may view a team's runs see its events, which its runs' pages show anyway. A holder of `view_audit` in a team
sees them without its runs, and may have the seals verified and export events. Staff with the permission to view events
see those of every team, and those that belong to no team.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.contrib.auth.models import Group, User
from django.db.models import QuerySet

from checkpoints.access.permissions import VIEW_AUDIT, VIEW_EVENT, VIEW_RUN, may_everywhere, teams_where
from checkpoints.events.event import EventQuerySet
from checkpoints.models import Event


@dataclass(frozen=True)
class AuditReader:
    """One person's access: events of `teams`, or all where `everything`; `audits` are the teams they may export."""

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
        """List the events that they may see, a query for each team, as each can follow an index."""
        result = Event.objects.sealable()
        return [result] if self.everything else [result.filter(team_id=team) for team in sorted(self.teams)]

    def audited(self) -> EventQuerySet:
        """Return the events that they may export."""
        events = Event.objects.sealable()
        return events if self.everything else events.filter(team_id__in=sorted(self.audits))

    def sees(self, event: Event) -> bool:
        return self.everything or event.team_id in self.teams


def reader(user: User) -> AuditReader:
    """Return this person's access to the audit as it is now."""
    if of_all(user):
        return AuditReader(user, True, frozenset(), frozenset())
    audits = frozenset(teams_where(user, VIEW_AUDIT).values_list("pk", flat=True))
    return AuditReader(user, False, frozenset(teams_of(user).values_list("pk", flat=True)), audits)


def of_all(user: User) -> bool:
    """Tell whether they see the events of every team, and those of no team."""
    return may_everywhere(user, VIEW_EVENT)


def teams_of(user: Any) -> QuerySet[Group]:
    """Return the teams whose events they see."""
    return teams_where(user, VIEW_AUDIT) | teams_where(user, VIEW_RUN)
