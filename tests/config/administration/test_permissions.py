"""An account is given what Holdpoint asks for, in words, and not what Django makes for each of its tables."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from bs4 import BeautifulSoup
from django.conf import settings
from django.contrib.auth.models import Permission, User
from django.urls import reverse

from approvals.admin.permissions import EVERYWHERE, IN_TEAMS, TOGETHER, permission_names
from tests.factories import make_team, make_user
from tests.factories.people import permissions
from tests.harness.signed_in_clients import confirmed

from .forms import saved_unchanged, standing


@pytest.fixture(scope="module")
def root() -> Any:
    return confirmed(make_user("Root", superuser=True))


def address(user: User) -> str:
    return reverse("admin:auth_user_change", args=[user.pk])


def test_an_account_is_offered_the_permissions_of_the_operators_page_and_no_others(root: Any) -> None:
    """150 were offered, "Can delete log entry" among them, and the eight that count were somewhere between."""
    page = BeautifulSoup(root.get(address(make_user("Sam"))).content.decode(), "html.parser")
    offered = {str(each["value"]) for each in page.select("input[name=may]")}
    assert not page.select("[name=user_permissions]")
    page_of_people = (Path(settings.BASE_DIR) / "docs" / "run.md").read_text().split("\n## People\n")[1]
    listed = set(re.findall(r"`((?:agents|approvals|auth|checkpoints)\.\w+)`", page_of_people.split("\n## ")[0]))
    assert offered == IN_TEAMS.keys() | EVERYWHERE.keys()
    assert listed == offered | {each for more in TOGETHER.values() for each in more}
    assert len(permissions(tuple(listed))) == len(listed)


def test_what_is_ticked_is_given_and_what_is_not_offered_stays(root: Any) -> None:
    user = make_user("Sam Staff", make_team(), may=("approvals.decide_gate", "auth.view_group", "approvals.add_policy"))
    form = standing(root.get(address(user)).content.decode())
    assert form["may"] == "approvals.decide_gate"
    wanted = ["checkpoints.view_event", "checkpoints.change_retentionpolicy"]
    assert root.post(address(user), form | {"may": wanted}).status_code == 302
    assert permission_names(user.user_permissions) == {
        *wanted, "checkpoints.add_retentionpolicy", "auth.view_group", "approvals.add_policy",
    }  # fmt: skip
    assert root.post(address(user), form | {"may": ["approvals.change_policy"]}).status_code == 302
    assert permission_names(user.user_permissions) == {
        "approvals.change_policy",
        "approvals.add_policy",
        "auth.view_group",
    }


def test_an_account_with_every_permission_that_there_is_keeps_them_when_it_is_saved(root: Any) -> None:
    user = make_user("Sam")
    user.user_permissions.set(Permission.objects.all())
    before = permission_names(user.user_permissions)
    saved_unchanged(root, address(user))
    assert permission_names(user.user_permissions) == before


def test_whoever_is_no_superuser_reads_what_somebody_may_and_gives_nothing() -> None:
    helper = make_user("Sam Staff", may=("auth.view_user", "auth.change_user"))
    User.objects.filter(pk=helper.pk).update(is_staff=True)
    user = make_user("Bob", may=("approvals.decide_gate",))
    client = confirmed(helper)
    page = client.get(address(user)).content.decode()
    assert "decide at the gates of policies that name the team" in page
    form = standing(page) | {"may": ["checkpoints.erase_text"], "user_permissions": ["1"]}
    assert client.post(address(user), form).status_code == 302
    assert permission_names(user.user_permissions) == {"approvals.decide_gate"}
