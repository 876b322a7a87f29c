"""Whoever lacks a permission reads which one, in which team, and who of those they know can give it."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

import pytest

from agents.errors import RewindNotAllowed
from agents.moves.rewind import check_may
from checkpoints.access import permissions
from checkpoints.access.missing_permission import IN_TEAMS, say_missing_permission, say_no_team
from checkpoints.access.token_scope import TokenBounds
from tests.factories import bob, eve, make_run, make_team, make_user
from tests.harness.session import ROOT
from tests.harness.signed_in_clients import signed_in

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


def test_only_who_can_open_the_administration_is_said_to_give_it() -> None:
    """A superuser who is no staff was named, and told to give it themselves, and the page is refused to them."""
    team = make_team("Finance", may=(permissions.VIEW_RUN,))
    root = make_user("Ada Root", team, superuser=True)
    root.is_staff = False
    root.save()
    ask = "Ask your administrator, who can give it in the administration, under Teams."
    for person in (bob(team), root):
        assert say_missing_permission(person, permissions.REWIND_RUN, team) == f"{REWIND} {team.name}. {ask}"


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


def test_the_page_and_the_api_say_it_too() -> None:
    """The page of every refusal said "Your account does not have the permission.", whatever was known."""
    team = make_team("Finance", may=(permissions.VIEW_RUN,))
    make_user("Ada Root", team, superuser=True)
    client, run = signed_in(bob(team)), make_run(team=team)
    page = client.post(f"/runs/{run.pk}/signals/")
    assert page.status_code == 403
    assert f"You need the permission “start runs” in {team.name}. Ada Root can give it" in page.content.decode()
    answer = client.post("/api/runs", {"agent": "none", "team": team.name}, content_type="application/json")
    assert answer.status_code == 403
    assert answer.json()["detail"].startswith(f"You need the permission “start runs” in {team.name}. Ada Root can")


@pytest.mark.parametrize("folder", ["agents/pages", "agents/api", "agents/remote", "approvals/views"])
def test_no_refusal_of_a_page_or_the_api_is_without_words(folder: str) -> None:
    refusals = {"PermissionDenied", "WorkNotAllowed", "RewindNotAllowed", "RevealNotAllowed", "MayNotErase"}
    files = Path(ROOT / folder).rglob("*.py")
    raised = [(path.name, each.exc) for path in files for each in ast.walk(ast.parse(path.read_text()))
              if isinstance(each, ast.Raise)]  # fmt: skip
    bare = [name for name, what in raised if isinstance(what, ast.Name) and what.id in refusals]
    assert bare == []


def test_whoever_mistypes_a_team_lacks_no_permission() -> None:
    """A mistyped name was answered with a permission that the sender had."""
    team, other = make_team("Finance", may=(permissions.START_RUN,)), make_team("Legal", may=(permissions.VIEW_RUN,))
    person = make_user("Ann", team, other)
    assert say_no_team(person, permissions.START_RUN, "Finanse") == (
        f"None of your teams has this name. Send one in which you have the permission: {team.name}."
    )
    assert say_no_team(person, permissions.START_RUN, other.name).startswith("You need the permission “start runs” in")
    assert say_no_team(eve(), permissions.START_RUN, "Finanse").startswith("You need the permission “start runs” in")
