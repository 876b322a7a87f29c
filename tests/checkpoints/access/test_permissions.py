"""Who may do what to a team's runs."""

from __future__ import annotations

import secrets
from typing import Any

import pytest
from django.contrib.auth.models import AnonymousUser, Group, Permission, User

from checkpoints.access import permissions
from checkpoints.models import Run
from tests.factories.stored_runs import make_run


def make_user(*teams: Group, own: tuple[str, ...] = (), **fields: Any) -> User:
    user = User.objects.create_user(f"ann-{secrets.token_hex(6)}", **fields)
    user.groups.set(teams)
    user.user_permissions.set(Permission.objects.filter(codename__in=own, content_type__app_label="checkpoints"))
    return user


def allow(team: Group, *names: str) -> Group:
    team.permissions.set(Permission.objects.filter(codename__in=names, content_type__app_label="checkpoints"))
    return team


def test_a_member_may_what_the_team_may() -> None:
    run = make_run()
    ann = make_user(allow(run.team, "view_run"))
    assert permissions.may_in_team(ann, run.team_id, "checkpoints.view_run")
    assert not permissions.may_in_team(ann, run.team_id, "checkpoints.rewind_run")
    assert list(Run.objects.visible_to(ann)) == [run]


def test_a_permission_of_ones_own_holds_in_ones_own_teams_alone() -> None:
    run, foreign = make_run(), make_run()
    bob = make_user(run.team, own=("rewind_run",))
    assert permissions.may_in_team(bob, run.team_id, "checkpoints.rewind_run")
    assert not permissions.may_in_team(bob, foreign.team_id, "checkpoints.rewind_run")


def test_a_permission_of_one_team_does_not_hold_in_another() -> None:
    run, other = make_run(), make_run()
    user = make_user(allow(run.team, "view_run", "start_run"), other.team)
    assert list(permissions.teams_where(user, "checkpoints.start_run")) == [run.team]
    assert list(Run.objects.visible_to(user)) == [run]


def test_an_outsider_and_a_disabled_account_see_nothing() -> None:
    run = make_run()
    disabled = make_user(allow(run.team, "view_run"), is_active=False)
    for user in (AnonymousUser(), User(username="new", is_active=False), make_user(), disabled):
        assert not permissions.may_in_team(user, run.team_id, "checkpoints.view_run"), user


def test_a_superuser_sees_every_team_and_acts_only_as_a_member() -> None:
    run = make_run()
    root = make_user(is_superuser=True)
    assert permissions.may_in_team(root, run.team_id, "checkpoints.view_run")
    assert not permissions.may_in_team(root, run.team_id, "checkpoints.rewind_run")


@pytest.mark.parametrize(
    "name", ["view_run", "checkpoints.", "checkpoints.view_nothing", "", "checkpoints.view.run", "approvals.view_run"]
)
def test_nobody_has_a_permission_that_there_is_not(name: str) -> None:
    run = make_run()
    member, root = make_user(allow(run.team, "view_run")), make_user(is_superuser=True)
    for person in (member, root):
        assert not permissions.may_in_team(person, run.team_id, name)
        assert not permissions.teams_of([person.pk], name)[person.pk, name]
    assert permissions.holders(name, teams=[run.team_id], among=[member.pk]) == {member.pk: frozenset()}
    assert permissions.members_where(name, teams=[run.team_id]) == {run.team_id: set()}


def test_many_people_are_asked_about_at_once_by_the_rule_for_one() -> None:
    """Two statements of one rule: wherever they part, a voter would count who may not decide."""
    rewinds, views, foreign = make_run(), make_run(), make_run()
    allow(rewinds.team, "rewind_run")
    allow(views.team, "view_run")
    people = [
        make_user(),
        make_user(rewinds.team),
        make_user(views.team),
        make_user(views.team, own=("rewind_run",)),
        make_user(own=("rewind_run",)),
        make_user(rewinds.team, views.team, own=("view_run",)),
        make_user(foreign.team, own=("rewind_run",)),
        make_user(is_superuser=True),
        make_user(rewinds.team, is_superuser=True),
        make_user(rewinds.team, is_active=False),
    ]
    for name in ("checkpoints.rewind_run", "approvals.rewind_run"):
        for teams in ([rewinds.team_id], [views.team_id], [rewinds.team_id, views.team_id], []):
            found = permissions.holders(name, teams=teams, among=[user.pk for user in people])
            one_by_one = {
                user.pk: frozenset(
                    permissions.teams_where(user, name).filter(pk__in=teams).values_list("pk", flat=True)
                )
                for user in people
                if user.is_active
            }
            assert found == one_by_one
    assert permissions.holders("checkpoints.rewind_run", teams=[rewinds.team_id], among=[]) == {}
