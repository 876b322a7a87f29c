"""Who may do what to a team's runs; whoever may not reads which permission they lack, and who can give it."""

from __future__ import annotations

import re
import secrets
from typing import Any

import pytest
from django.contrib.auth.models import AnonymousUser, Group, Permission, User

from agents.errors import RewindNotAllowed
from agents.moves.rewind import check_may
from checkpoints.access import permissions
from checkpoints.access.missing_permission import IN_TEAMS, say_missing_permission
from checkpoints.access.token_scope import TokenBounds
from checkpoints.models import Run
from tests.factories import bob, eve, make_run, make_team, make_user, stored_runs


def make_person(*teams: Group, own: tuple[str, ...] = (), **fields: Any) -> User:
    user = User.objects.create_user(f"ann-{secrets.token_hex(6)}", **fields)
    user.groups.set(teams)
    user.user_permissions.set(Permission.objects.filter(codename__in=own, content_type__app_label="checkpoints"))
    return user


def allow(team: Group, *names: str) -> Group:
    team.permissions.set(Permission.objects.filter(codename__in=names, content_type__app_label="checkpoints"))
    return team


def test_a_permission_holds_in_ones_own_teams_and_a_superuser_acts_only_as_a_member() -> None:
    run, foreign = stored_runs.make_run(), stored_runs.make_run()
    bob = make_person(run.team, own=("rewind_run",))
    assert permissions.may_in_team(bob, run.team_id, "checkpoints.rewind_run")
    assert not permissions.may_in_team(bob, foreign.team_id, "checkpoints.rewind_run")
    run, other = stored_runs.make_run(), stored_runs.make_run()
    user = make_person(allow(run.team, "view_run", "start_run"), other.team)
    assert list(permissions.teams_where(user, "checkpoints.start_run")) == [run.team]
    assert list(Run.objects.visible_to(user)) == [run]
    run = stored_runs.make_run()
    disabled = make_person(allow(run.team, "view_run"), is_active=False)
    for outsider in (AnonymousUser(), User(username="new", is_active=False), make_person(), disabled):
        assert not permissions.may_in_team(outsider, run.team_id, "checkpoints.view_run"), outsider
    run = stored_runs.make_run()
    root = make_person(is_superuser=True)
    assert permissions.may_in_team(root, run.team_id, "checkpoints.view_run")
    assert not permissions.may_in_team(root, run.team_id, "checkpoints.rewind_run")


@pytest.mark.parametrize("name", ["view_run", "checkpoints.view_nothing", "", "approvals.view_run"])
def test_nobody_has_a_permission_that_there_is_not(name: str) -> None:
    run = stored_runs.make_run()
    member, root = make_person(allow(run.team, "view_run")), make_person(is_superuser=True)
    for person in (member, root):
        assert not permissions.may_in_team(person, run.team_id, name)
        assert not permissions.teams_of([person.pk], name)[person.pk, name]
    assert permissions.holders(name, teams=[run.team_id], among=[member.pk]) == {member.pk: frozenset()}
    assert permissions.members_where(name, teams=[run.team_id]) == {run.team_id: set()}


def test_many_people_are_asked_about_at_once_by_the_rule_for_one() -> None:
    """Two statements of one rule: wherever they part, a voter would count who may not decide."""
    rewinds, views, foreign = stored_runs.make_run(), stored_runs.make_run(), stored_runs.make_run()
    allow(rewinds.team, "rewind_run")
    allow(views.team, "view_run")
    people = [
        make_person(),
        make_person(rewinds.team),
        make_person(views.team),
        make_person(views.team, own=("rewind_run",)),
        make_person(own=("rewind_run",)),
        make_person(rewinds.team, views.team, own=("view_run",)),
        make_person(foreign.team, own=("rewind_run",)),
        make_person(is_superuser=True),
        make_person(rewinds.team, is_superuser=True),
        make_person(rewinds.team, is_active=False),
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


REWIND = "You need the permission “rewind, edit, fork and cancel runs, and undo what they left behind” in"


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
    gone = make_user("Gone Root", team, superuser=True)
    gone.is_active = False
    gone.save()
    said = say_missing_permission(bob(team), permissions.REWIND_RUN, team)
    assert said == f"{REWIND} {team.name}. Ask your administrator, who can give it in the administration, under Teams."
    stranger = say_missing_permission(eve(), permissions.START_RUN, team)
    assert stranger.startswith(f"Only members of {team.name} with the permission “start runs” may do this. Ask your")
    assert say_missing_permission(eve(), permissions.START_RUN).startswith(
        "You need the permission “start runs” in one of your"
    )


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
