"""Who may do what to a team's runs; whoever may not reads which permission they lack, and who can give it."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.contrib.auth.models import AnonymousUser, User

from agents.errors import RewindNotAllowed
from agents.moves.rewind import check_may
from checkpoints.access import permissions
from checkpoints.access.permissions import IN_TEAMS, say_missing_permission
from checkpoints.access.token_scope import TokenBounds
from checkpoints.models import Run
from tests.factories import bob, eve, make_run, make_team, make_user

REWIND = "You need the permission “rewind, edit, fork and cancel runs, and undo what they left behind” in"


def test_a_permission_holds_in_ones_own_teams_and_a_superuser_acts_only_as_a_member() -> None:
    team, foreign, views = make_team(may=()), make_team(), make_team(may=("checkpoints.view_run",))
    own = make_user("Own", team, may=("checkpoints.rewind_run",))
    assert permissions.may_in_team(own, team.pk, "checkpoints.rewind_run")
    assert not permissions.may_in_team(own, foreign.pk, "checkpoints.rewind_run")
    run = make_run(team=views)
    reader = make_user("Reader", views, team)
    assert list(permissions.teams_where(reader, "checkpoints.view_run")) == [views]
    assert list(Run.objects.visible_to(reader)) == [run]
    disabled = switched_off(make_user("Gone", views))
    for outsider in (AnonymousUser(), User(username="new", is_active=False), eve(), disabled):
        assert not permissions.may_in_team(outsider, views.pk, "checkpoints.view_run"), outsider
    root = make_user("Root", superuser=True)
    assert permissions.may_in_team(root, views.pk, "checkpoints.view_run")
    assert not permissions.may_in_team(root, foreign.pk, "checkpoints.rewind_run")


def switched_off(user: User) -> User:
    user.is_active = False
    user.save()
    return user


def test_nobody_has_a_permission_that_there_is_not() -> None:
    team = make_team()
    member, root = make_user("Member", team), make_user("Root", superuser=True)
    for name in ("view_run", "checkpoints.view_nothing", "", "approvals.view_run"):
        for person in (member, root):
            assert not permissions.may_in_team(person, team.pk, name)
            assert not permissions.teams_of([person.pk], name)[person.pk, name]
        assert permissions.holders(name, teams=[team.pk], among=[member.pk]) == {member.pk: frozenset()}
        assert permissions.members_where(name, teams=[team.pk]) == {team.pk: set()}


def test_many_people_are_asked_about_at_once_by_the_rule_for_one() -> None:
    """Two statements of one rule: wherever they part, a voter would count who may not decide."""
    own = (permissions.REWIND_RUN,)
    rewinds, views, foreign = make_team(may=own), make_team(may=(permissions.VIEW_RUN,)), make_team(may=())
    people = [
        eve(), bob(rewinds), bob(views), make_user("A", views, may=own), make_user("B", may=own),
        make_user("C", rewinds, views, may=(permissions.VIEW_RUN,)), make_user("D", foreign, may=own),
        make_user("E", superuser=True), make_user("F", rewinds, superuser=True), switched_off(bob(rewinds)),
    ]  # fmt: skip
    active = [user for user in people if user.is_active]
    for name in ("checkpoints.rewind_run", "approvals.rewind_run"):
        for teams in ([rewinds.pk], [views.pk], [rewinds.pk, views.pk], []):
            found = permissions.holders(name, teams=teams, among=[user.pk for user in people])
            each = {user.pk: permissions.teams_where(user, name).filter(pk__in=teams) for user in active}
            assert found == {pk: frozenset(team.pk for team in where) for pk, where in each.items()}
    assert permissions.holders("checkpoints.rewind_run", teams=[rewinds.pk], among=[]) == {}


def test_a_refusal_names_the_permission_the_team_and_who_can_give_it() -> None:
    """A person read "You may not rewind, edit, fork, settle or cancel runs of this team.", and not whom to ask."""
    team = make_team("Finance", may=(permissions.VIEW_RUN,))
    root, person = make_user("Ada Root", team, superuser=True), bob(team)
    with pytest.raises(RewindNotAllowed) as refused:
        check_may(make_run(team=team), person)
    assert str(refused.value) == f"{REWIND} {team.name}. Ada Root can give it in the administration, under Teams."
    own = say_missing_permission(root, permissions.REWIND_RUN, team)
    assert own == f"{REWIND} {team.name}. You can give it yourself in the administration, under Teams."


def test_nobody_is_named_whom_the_reader_does_not_see() -> None:
    team = make_team("Finance", may=(permissions.VIEW_RUN,))
    make_user("Ada Root", superuser=True)
    switched_off(make_user("Gone Root", team, superuser=True))
    said = say_missing_permission(bob(team), permissions.REWIND_RUN, team)
    assert said == f"{REWIND} {team.name}. Ask your administrator, who can give it in the administration, under Teams."
    stranger = say_missing_permission(eve(), permissions.START_RUN, team)
    assert stranger.startswith(f"Only members of {team.name} with the permission “start runs” may do this. Ask your")
    anywhere = say_missing_permission(eve(), permissions.START_RUN)
    assert anywhere.startswith("You need the permission “start runs” in one of your")


def test_a_token_of_another_team_is_said_not_to_reach_where_its_owner_may() -> None:
    """Its owner read that they need the permission in one of their teams, and they have it."""
    finance, support = make_team("Finance", may=(permissions.START_RUN,)), make_team("Support", may=())
    owner: Any = bob(finance, support)
    owner.bounds = TokenBounds(support.pk)
    assert say_missing_permission(owner, permissions.START_RUN) == (
        "This token reaches no team where you have the permission “start runs”. Use another one."
    )
    other: Any = bob(support)
    other.bounds = TokenBounds(support.pk)
    assert say_missing_permission(other, permissions.START_RUN).startswith("You need the permission “start runs” in")


def test_each_permission_of_a_team_has_its_words() -> None:
    named = {value for name, value in vars(permissions).items() if name.isupper() and isinstance(value, str)}
    everywhere = {permissions.VIEW_EVENT, permissions.PRUNE_CHECKPOINTS, permissions.SET_LEGAL_HOLD}
    everywhere.add(permissions.CHANGE_TOKEN)
    assert set(IN_TEAMS) == {each for each in named if re.fullmatch(r"[a-z]+\.[a-z_]+", each)} - everywhere - {
        permissions.CHANGE_TOKEN
    }
