"""Writes versions of policies: at once where they are no milder, else once a second person has confirmed them.

It also finds the versions of policies that a change is measured by: those that Holdpoint wrote, by their events.

Whoever has the application's role alone can put a version into the table or alter one, but writes no event that vouches
for it. No gate opens by it; were it a measure, or what a form begins with, one person who saves it put it in force.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable
from datetime import timedelta

from django.contrib.auth.models import Group, User
from django.db import transaction

from approvals.models import Calendar, Gate, Policy, PolicyChange, versions
from approvals.models.policy import DEFAULT, SETTINGS
from approvals.policy import required
from approvals.policy.rules.written import Directory
from checkpoints import actors
from checkpoints.access.permissions import may_everywhere
from checkpoints.audit import covered_rows
from checkpoints.events import event_log
from checkpoints.values.canonical_json import decode_canonical, encode_canonical

from .lowering import STRUCTURE, PolicyTerms, acts_in_time, differences, milder


def policies_in_force(team: int, *names: str) -> list[Policy]:
    """Return the team's newest versions that are vouched for, of these names or of all; some may be altered since."""
    newest: dict[str, Policy] = {}
    stored = Policy.objects.filter(team=team, name__in=names) if names else Policy.objects.filter(team=team)
    for version in stored.select_related("team").order_by("name", "-version"):
        if version.name not in newest and _is_vouched(version):
            newest[version.name] = version
    return list(newest.values())


def in_force(policy: Policy) -> Policy | None:
    """Find the newest version of the same team and name that is vouched for."""
    return next(iter(policies_in_force(policy.team_id, policy.name)), None)


def opens_gates(policy: Policy) -> bool:
    """Tell whether gates open by this stored version: nothing newer is in the table, and it is as it was written."""
    return policy.proven and versions.newest(policy) == policy


def _is_vouched(policy: Policy) -> bool:
    """Tell whether Holdpoint wrote this version, though it may have been altered since."""
    return policy.proven or any(event.holds for event in covered_rows.covering_events(list(policy.rows)))


MAY = "approvals.change_policy"


class ChangeRefused(Exception):
    """A change of a policy that was not carried out; the message says why."""

    said = "This change was not carried out."

    def __str__(self) -> str:
        return str(self.said)


class SamePerson(ChangeRefused):
    """Raised where the person who proposed a change confirms it."""

    said = "You proposed this change. Somebody else who may write policies has to confirm it."


class MayNotConfirm(ChangeRefused):
    """Raised where somebody who may not write policies confirms a change."""

    said = "You may not write policies. Somebody else who may has to confirm this change."


class NamesGone(ChangeRefused):
    """Raised where a team or a person is deleted who would decide by a change: others would decide instead."""

    said = "A team or a person that this change names is gone. Refuse it, and propose it anew."


class ChangeEnded(ChangeRefused):
    """Raised where a change was confirmed or refused before, or is outdated."""

    said = "This change has ended: somebody confirmed or refused it, or another version was written."


def save(policy: Policy, *, groups: Iterable[Group], people: Iterable[User], by: User) -> Policy | PolicyChange:
    """Write an unsaved policy as the next version; where that is milder than the one in force, as a waiting change."""
    chosen, named = list(groups), list(people)
    with transaction.atomic():
        Group.objects.select_for_update(no_key=True).get(pk=policy.team_id)
        base = base_of(policy, chosen, named)
        if base and (reasons := _milder(base, terms(policy, chosen, named))):
            return _propose(policy, base, chosen, named, reasons, by)
        versions.write(policy, by=actors.of_user(by), groups=chosen, people=named)
        return policy


def confirm(change: PolicyChange, *, by: User) -> Policy:
    """Write the version that was proposed. Raises SamePerson, MayNotConfirm, NamesGone or ChangeEnded."""
    with transaction.atomic():
        Group.objects.select_for_update(no_key=True).get(pk=change.team_id)
        _check(change, by)
        made = Policy(team=change.team, name=change.name, **change.values)
        current = base_of(made, change.teams(), change.people()) == change.base
        status = PolicyChange.Status.CONFIRMED if current else PolicyChange.Status.OUTDATED
        ended = change.end(status, by=by)
        if ended and current:
            versions.write(made, by=actors.of_user(by), groups=change.teams(), people=change.people())
            PolicyChange.objects.filter(pk=change.pk).update(made=made)
            return made
    raise ChangeEnded


def refuse(change: PolicyChange, *, by: User) -> None:
    """End a waiting change without writing it; its own author may too. Raises MayNotConfirm or ChangeEnded."""
    with transaction.atomic():
        if not may_everywhere(by, MAY):
            raise MayNotConfirm
        if not change.end(PolicyChange.Status.REFUSED, by=by):
            raise ChangeEnded
        _record("policy.refused", change, by)


def base_of(policy: Policy, groups: Iterable[Group], people: Iterable[User]) -> Policy | None:
    """Find the policy in force that an unsaved version is measured by: the one of its name.

    Versions that nobody vouches for are no measure, see `vouched`. A program may name any policy of its team, so a new
    name lets pass what no policy let pass before, unless one of them asks as little: it is measured by the one to which
    it comes nearest. While the team has only a default, gates that ask for any other name are the default's. Before the
    team's first gate its first policies have no measure, but a default that people wrote.
    """
    if found := in_force(policy):
        return found
    written = policies_in_force(policy.team_id)
    if not Gate.objects.filter(team=policy.team_id).exists():
        built_in = terms(Policy(team=policy.team, name=DEFAULT), [], [])
        if any(each.name != DEFAULT or terms_of(each) == built_in for each in written):
            return None
    asked = terms(policy, groups, people)
    return min(written, key=lambda each: (len(_milder(each, asked)), each.pk), default=None)


def compared(policy: Policy, groups: Iterable[Group], people: Iterable[User]) -> list[str]:
    """List in words how an unsaved version is milder than its base; [] where it is not, or has none."""
    base = base_of(policy, groups, people)
    return _milder(base, terms(policy, groups, people)) if base else []


def _milder(base: Policy, after: PolicyTerms) -> list[str]:
    if base.proven:
        return milder(terms_of(base), after)
    return [f"Version {base.version} was altered in the database, so nobody can tell what it asked."]


def doubts(policy: Policy) -> list[str]:
    """Say why no gate opens by the policies of this name, and how what is in the table differs; [] where gates do."""
    newest, known = versions.newest(policy), in_force(policy)
    if newest.proven:
        return []
    if newest == known:
        words = (
            f"Version {newest.version} was altered in the database. The audit has what was written. No "
            "gate opens by this policy until somebody saves it as it should be, and a second person "
            "confirms that."
        )
        return [words]
    words = (
        f"Nobody vouches for version {newest.version}: it was written into the database past "
        "Holdpoint, or by a release that is being replaced. No gate opens by this policy until "
        "somebody saves it as it should be."
    )
    said = [words]
    if known is None:
        return [*said, "No other version is vouched for, so what you save is compared as a new policy is."]
    words = (
        f"Version {known.version} is vouched for, so the next one starts from that. If version "
        f"{newest.version} counted:"
    )
    before, after, names = terms_of(known), terms_of(newest), Directory.now().names
    return [*said, words, *differences(before, after, names)]


def acting_by(calendar: Calendar) -> list[str]:
    """List the policies that count by this calendar, and approve at a deadline or escalate.

    Those in force, or with open gates, and those that wait for a second person. Joins the caller's transaction, until
    whose end no policy of the team is written.
    """
    Group.objects.select_for_update(no_key=True).get(pk=calendar.team_id)
    used = Policy.objects.filter(calendar=calendar)
    found = [each for each in used if in_force(each) == each or each.gates.open().exists()]
    for change in PolicyChange.objects.filter(team=calendar.team_id, status=PolicyChange.Status.WAITING):
        proposed = Policy(team=change.team, name=change.name, **change.values)
        if proposed.calendar_id == calendar.pk:
            found.append(decided_by(proposed, change.teams(), change.people()))
    return sorted({each.name for each in found if acts_in_time(terms_of(each))})


def terms_of(policy: Policy) -> PolicyTerms:
    """Return a stored version as plain values."""
    return PolicyTerms(
        settings={name: getattr(policy, name) for name in SETTINGS if name not in STRUCTURE},
        own=required.own(policy),
        rules=required.rules_of(policy.rules),
    )


def terms(policy: Policy, groups: Iterable[Group], people: Iterable[User]) -> PolicyTerms:
    """Return an unsaved version, decided by these, as plain values."""
    return terms_of(decided_by(policy, groups, people))


def decided_by(policy: Policy, groups: Iterable[Group], people: Iterable[User]) -> Policy:
    """Return a copy of an unsaved version that says who decides, as a stored one does."""
    drafted = copy.copy(policy)
    drafted.named = list(people)
    # In the order of a stored version, since the two are compared.
    asked = sorted(groups, key=lambda team: team.name)
    drafted.reviewers = asked or ([] if drafted.named else [policy.team])
    drafted.person_ids = sorted(each.pk for each in drafted.named)
    drafted.reviewer_ids = [each.pk for each in drafted.reviewers]
    return drafted


def _propose(
    policy: Policy, base: Policy, groups: list[Group], people: list[User], reasons: list[str], by: User
) -> PolicyChange:
    said = {name: getattr(policy, name) for name in SETTINGS}
    seconds = {name: int(each.total_seconds()) for name, each in said.items() if isinstance(each, timedelta)}
    change, new = PolicyChange.objects.get_or_create(
        base=base,
        name=policy.name,
        settings=encode_canonical(said | seconds).decode(),
        team_ids=sorted(each.pk for each in groups),
        person_ids=sorted(each.pk for each in people),
        proposed_by=by,
        status=PolicyChange.Status.WAITING,
        defaults={"team_id": policy.team_id, "milder": encode_canonical(reasons).decode()},
    )
    if new:  # else the same file was applied again, or the same form sent
        _record("policy.proposed", change, by)
    return change


def _check(change: PolicyChange, by: User) -> None:
    if by.pk == change.proposed_by_id:
        raise SamePerson
    if not may_everywhere(by, MAY):
        raise MayNotConfirm
    if (len(change.teams()), len(change.people())) != (len(change.team_ids), len(change.person_ids)):
        raise NamesGone


def _record(kind: str, change: PolicyChange, by: User) -> None:
    event_log.record(
        kind,
        subject=f"policy:{change.base_id}",
        by=actors.of_user(by),
        team_id=change.team_id,
        version=change.base.version,
        data={
            "name": change.name, "change": change.pk, "milder": change.reasons, "proposed_by": change.proposed_by_id,
            "settings": decode_canonical(change.settings.encode()), "groups": change.team_ids,
            "people": change.person_ids,
        },
    )  # fmt: skip
