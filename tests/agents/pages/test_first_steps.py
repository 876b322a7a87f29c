"""Whoever installed Holdpoint is told on the first page what has to be there before an agent can ask anybody."""

from __future__ import annotations

import pytest
from bs4 import BeautifulSoup
from django.contrib.auth.models import Group, User
from django.urls import reverse

from agents import tokens
from agents.templatetags.first_steps import list_first_steps
from checkpoints import actors
from tests.factories import make_policy, make_run, make_team, make_user
from tests.factories.tokens import make_token
from tests.harness.signed_in_clients import signed_in

pytestmark = pytest.mark.whole_database


def titles(person: User) -> dict[str, bool]:
    return {step.title: step.done for step in list_first_steps(person)}


def linked(person: User) -> list[str]:
    page = BeautifulSoup(signed_in(person).get("/").content.decode(), "html.parser")
    return [str(link["href"]) for link in page.select(".first-steps a")]


def test_the_steps_go_one_by_one_and_then_their_list() -> None:
    """The first page after `createsuperuser` was an empty inbox, and nothing said what to do."""
    if Group.objects.exists():
        pytest.fail("this test needs an installation without a team")
    root, staff = make_user("Root", superuser=True), make_user("Sam")
    User.objects.filter(pk=staff.pk).update(is_staff=True)
    assert linked(User.objects.get(pk=staff.pk)) == [], "who may take none is shown none"
    added = reverse("admin:auth_group_add")
    to_tokens, policies = reverse("tokens"), reverse("admin:approvals_policy_add")
    assert linked(root) == [added, added, policies, to_tokens]
    team = make_team(may=())
    assert linked(root) == [reverse("admin:auth_group_change", args=[team.pk]), policies, to_tokens]
    ann = make_user("Ann", team, may=("approvals.decide_gate", "checkpoints.start_run"))
    assert linked(root) == [policies, to_tokens]
    make_policy(team)
    assert titles(root) == {
        "Make a team": True, "Say who may decide": True, "Write a policy": True, "Make a token for an agent": False,
    }  # fmt: skip
    make_token(ann)
    revoked, _sent = make_token(ann, agent="quoter", team=team)
    tokens.revoke(revoked, by=actors.of_user(ann))
    assert linked(root) == [to_tokens], "a person's own token lets no agent in, nor does a revoked one"
    assert linked(ann) == []
    agents_own, _sent = make_token(ann, agent="quoter", team=team)
    assert linked(root) == []
    tokens.revoke(agents_own, by=actors.of_user(ann))
    assert linked(root) == [to_tokens]
    make_run(team=team)
    assert linked(root) == []
