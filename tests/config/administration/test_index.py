"""The administration is listed by what somebody wants to do, in its index, its side bar and its way back."""

from __future__ import annotations

from typing import Any

import pytest
from bs4 import BeautifulSoup
from django.contrib import admin
from django.contrib.auth.models import User
from django.urls import reverse

from config.administration import SECTIONS, section_of
from tests.factories import make_team, make_user
from tests.harness.signed_in_clients import signed_in


@pytest.fixture(scope="module")
def root() -> Any:
    return signed_in(make_user("Root", superuser=True))


def listed(page: bytes, within: str) -> dict[str, list[str]]:
    """By section, what is listed there."""
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
    assert index["Integrations"] == ["Webhooks", "Deliveries", "Notices", "Channels", "Chat channels", "Tokens"]
    assert index["Records"][:2] == ["Runs", "Gates"]
    assert listed(root.get(reverse("admin:checkpoints_run_changelist")).content, "#nav-sidebar") == index


def test_every_table_of_the_administration_has_its_section_and_says_what_it_is_for() -> None:
    registered = {model._meta.label_lower for model in admin.site._registry}
    assert registered == {label for tables in SECTIONS.values() for label in tables}
    assert all(section_of(label) for label in registered)
    assert all(str(words).endswith(".") for tables in SECTIONS.values() for words in tables.values())


def test_the_way_back_of_every_list_goes_by_task(root: Any) -> None:
    """It said Home, Authentication and Authorization, Teams."""
    for model in admin.site._registry:
        address = reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist")
        page = BeautifulSoup(root.get(address).content.decode(), "html.parser")
        crumbs = page.select_one(".breadcrumbs")
        assert crumbs is not None
        way = [each.strip() for each in crumbs.get_text().split("\N{SINGLE RIGHT-POINTING ANGLE QUOTATION MARK}")]
        plural, section = str(model._meta.verbose_name_plural), section_of(model._meta.label_lower)
        name = plural[0].upper() + plural[1:]
        assert way == (["Administration", name] if section == name else ["Administration", section, name])
        heading = page.select_one("h1")
        assert heading is not None
        assert heading.text.lower() == plural


def test_staff_are_shown_what_they_may_open_and_no_empty_section() -> None:
    member = make_user("Sam Staff", make_team(), may=("auth.view_user",))
    User.objects.filter(pk=member.pk).update(is_staff=True)
    assert listed(signed_in(member).get(reverse("admin:index")).content, "#content-main") == {"People": ["Users"]}


def test_a_filter_says_what_is_chosen_and_the_table_comes_after_it(root: Any) -> None:
    """The filters stood beside the table and took a quarter of the width: columns were cut at 1,440 pixels."""
    page = root.get(reverse("admin:approvals_gate_changelist"), {"status__exact": "open"}).content.decode()
    found = BeautifulSoup(page, "html.parser")
    chosen = {str(each.get_text(" ", strip=True)) for each in found.select(".filters summary")}
    assert "Status: Open" in chosen
    assert page.index('class="filters"') < page.index('id="changelist-form"')
    assert not found.select("#changelist-filter")
