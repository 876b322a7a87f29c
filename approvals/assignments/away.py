"""Times away: somebody is out of office, and names who decides for them meanwhile, for all gates or some.

The delegate gets what the person may do in their own name, and no more, see approvals.models.assignments.reviewers.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime, timedelta

from django.contrib.auth.models import Group, User
from django.db import transaction
from django.db.models import Q
from django.db.models.functions import Now
from django.utils import timezone

from approvals.models import Delegation, Policy
from checkpoints import actors
from checkpoints.access.permissions import DECIDE_GATE, colleagues_of, teams_where
from checkpoints.events import event_log

from .errors import AwayRefused

LONGEST = timedelta(days=366)
MOST = 20  # of one person, that have not ended


def scopes(person: User) -> list[tuple[Group, list[str]]]:
    """List the teams at whose gates the person decides, each with the names of the policies under which they do."""
    found: dict[int, tuple[Group, list[str]]] = {}
    policies = Policy.objects.decided_by(person).select_related("team").order_by("team__name", "name")
    for policy in policies:
        names = found.setdefault(policy.team_id, (policy.team, []))[1]
        if policy.name not in names:
            names.append(policy.name)
    for team in teams_where(person, DECIDE_GATE).order_by("name"):
        found.setdefault(team.pk, (team, []))
    return list(found.values())


def make(
    person: User,
    *,
    starts: datetime,
    ends: datetime,
    delegate: User | None = None,
    teams: Collection[int] = (),
    policies: Collection[str] = (),
) -> Delegation:
    """Record that a person is away, and who decides for them; only they themselves may. Raises AwayRefused.

    `teams`, `policies`: the gates' teams and the names of their policies; none for all.
    """
    now = timezone.now()
    if ends <= starts:
        raise AwayRefused("The end has to be after the beginning.")
    if ends <= now:
        raise AwayRefused("The end has to be still to come.")
    if ends - max(starts, now) > LONGEST:
        raise AwayRefused("A time away lasts a year at most. Plan the rest as another one.")
    with transaction.atomic(durable=True):
        # Both in one order: two people who name each other at the same time do not both succeed.
        people = sorted({person.pk, delegate.pk} if delegate else {person.pk})
        list(User.objects.select_for_update(no_key=True).filter(pk__in=people).order_by("pk"))
        if Delegation.objects.standing().filter(person=person).count() >= MOST:
            raise AwayRefused(f"You have planned {MOST} times away. End one first.")
        _check_scope(person, teams, policies)
        if delegate is not None:
            _check_delegate(person, delegate, starts, ends)
        made = Delegation.objects.create(
            person=person, delegate=delegate, starts_at=starts, ends_at=ends,
            teams=sorted(teams), policies=sorted(policies),
        )  # fmt: skip
        event_log.record(
            "delegation.made", subject=f"delegation:{made.pk}", by=actors.of_user(person), data=_facts(made)
        )
    return made


def end(delegation: Delegation, *, by: User) -> bool:
    """End somebody's own time away, now; False where it has ended. From then on the delegate decides for nobody."""
    with transaction.atomic(durable=True):
        mine = Delegation.objects.standing().filter(pk=delegation.pk, person=by)
        if not mine.update(ended_at=Now()):
            return False
        delegation.refresh_from_db()
        event_log.record(
            "delegation.ended", subject=f"delegation:{delegation.pk}", by=actors.of_user(by), data=_facts(delegation)
        )
    return True


def _facts(made: Delegation) -> dict[str, object]:
    return {
        "person": f"user:{made.person_id}", "delegate": f"user:{made.delegate_id}" if made.delegate_id else None,
        "starts": made.starts_at.isoformat(), "ends": made.ends_at.isoformat(),
        "teams": made.teams, "policies": made.policies,
    }  # fmt: skip


def _check_delegate(person: User, delegate: User, starts: datetime, ends: datetime) -> None:
    if not colleagues_of(person).filter(pk=delegate.pk).exists():
        raise AwayRefused("Choose somebody who is in one of your teams.")
    overlap = Q(starts_at__lt=ends, ends_at__gt=starts)
    gone = Delegation.objects.standing().filter(overlap, person=delegate).first()
    if gone is not None:
        name = actors.of_user(delegate).name
        raise AwayRefused(f"{name} is away then, too. Choose somebody else.")


def _check_scope(person: User, teams: Collection[int], policies: Collection[str]) -> None:
    """Refuse teams and policies of which the person knows nothing."""
    known = scopes(person)
    names = {name for _team, each in known for name in each}
    if set(teams) - {team.pk for team, _names in known} or set(policies) - names:
        raise AwayRefused("Choose teams and policies of your own gates.")
