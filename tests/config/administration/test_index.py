"""The administration is listed by task, gives what Holdpoint asks for, and its words can be read."""

from __future__ import annotations

from typing import Any

import pytest
from bs4 import BeautifulSoup
from django.contrib import admin
from django.contrib.auth.models import User
from django.urls import reverse

from approvals.admin.teams import permission_names
from config.administration import SECTIONS, section_of
from tests.config.administration.forms import standing
from tests.factories import make_team, make_user
from tests.harness.signed_in_clients import confirmed, signed_in


@pytest.fixture(scope="module")
def root() -> Any:
    return confirmed(make_user("Root", superuser=True))


def listed(page: bytes, within: str) -> dict[str, list[str]]:
    found = BeautifulSoup(page.decode(), "html.parser").select(f"{within} .tasks")
    return {
        str(each.select_one("caption").text): [a.text for a in each.select("th a")]  # type: ignore[union-attr]
        for each in found
    }


def test_the_index_and_the_side_bar_go_by_task(root: Any) -> None:
    """They went by app: Holds and Retention policies stood among "Checkpoints", Teams in "Authentication"."""
    index = listed(root.get(reverse("admin:index")).content, "#content-main")
    assert list(index) == ["People", "Policies", "Retention", "Integrations", "Records"]
    assert index["People"] == ["Users", "Teams"]
    assert "Policies" in index["Policies"]
    assert index["Retention"] == ["Retention policies", "Prunes", "Legal holds", "Technical holds"]
    assert index["Integrations"] == ["Webhooks", "Messages", "Channels", "Chat channels", "Tokens"]
    assert index["Records"][:2] == ["Runs", "Gates"]
    assert listed(root.get(reverse("admin:checkpoints_run_changelist")).content, "#nav-sidebar") == index


def test_every_table_of_the_administration_has_its_section_and_says_what_it_is_for() -> None:
    registered = {model._meta.label_lower for model in admin.site._registry}
    assert registered == {label for tables in SECTIONS.values() for label in tables}
    assert all(section_of(label) for label in registered)
    assert all(str(words).endswith(".") for tables in SECTIONS.values() for words in tables.values())


def test_staff_are_shown_what_they_may_open_and_no_empty_section() -> None:
    member = make_user("Sam Staff", make_team(), may=("auth.view_user",), staff=True)
    assert listed(signed_in(member).get(reverse("admin:index")).content, "#content-main") == {"People": ["Users"]}


def address(user: User) -> str:
    return reverse("admin:auth_user_change", args=[user.pk])


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
    given = {"approvals.change_policy", "approvals.add_policy", "auth.view_group"}
    assert permission_names(user.user_permissions) == given


def test_whoever_is_no_superuser_reads_what_somebody_may_and_gives_nothing() -> None:
    helper = make_user("Sam Staff", may=("auth.view_user", "auth.change_user"), staff=True)
    user = make_user("Bob", may=("approvals.decide_gate",))
    client = confirmed(helper)
    page = client.get(address(user)).content.decode()
    assert "decide at the gates of policies that name the team" in page
    form = standing(page) | {"may": ["checkpoints.erase_text"], "user_permissions": ["1"]}
    assert client.post(address(user), form).status_code == 302
    assert permission_names(user.user_permissions) == {"approvals.decide_gate"}
