"""The administration is listed by task, gives what Holdpoint asks for, and its words can be read."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from bs4 import BeautifulSoup
from bs4.element import Tag
from django.conf import settings
from django.contrib import admin
from django.contrib.auth.models import Group, Permission, User
from django.urls import reverse
from playwright.sync_api import Page

from approvals.admin.teams import EVERYWHERE, IN_TEAMS, TOGETHER, permission_names
from approvals.models import Calendar, Policy, Tool, Webhook
from approvals.policy_changes import changes
from checkpoints.models import Hold, RetentionPolicy
from config.administration import SECTIONS, section_of
from tests.checkpoints.retention.pruned_runs import ended, keep, looked, pruned
from tests.config.administration.forms import saved_unchanged, standing
from tests.factories import decide, make_gate, make_policy, make_team, make_user, unique
from tests.factories.people import permissions
from tests.harness.browser_checks import ONCE_MORE, TAGS, check, each_look, watched
from tests.harness.signed_in_clients import confirmed, signed_in


@pytest.fixture(scope="module")
def root() -> Any:
    return confirmed(make_user("Root", superuser=True))


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


OUT_OF_SIGHT = """() => [...document.querySelectorAll("#result_list tbody :is(th, td)")]
  .filter(cell => cell.getBoundingClientRect().right > innerWidth || !cell.dataset.label).length"""


def rows() -> dict[str, str]:
    """Make a row of each list that is hard to fit in; return what finds it there, by the list's name."""
    team, others = make_team("Customer service"), [make_team("Accounts receivable of the north") for _ in range(3)]
    policy = make_policy(team, name=unique("r" * 50)[:60], groups=tuple(others), deadline=dt.timedelta(days=2))
    gate = make_gate(policy=policy)
    person = make_user("Root" * 20, team)
    return {
        "approvals_policy": team.name,
        "approvals_gate": gate.title,
        "checkpoints_technicalhold": str(gate.run.pk),
        "checkpoints_run": str(gate.run.pk),
        "auth_user": person.username,
    }


@pytest.mark.long
@pytest.mark.examples
@pytest.mark.whole_database  # the lists' filters name every team and policy
def test_no_column_of_a_list_is_cut(new_page: Callable[..., Page], web: str) -> None:
    """Policies had four columns behind the edge at 1,440 pixels, with nothing that told of them."""
    page, made = new_page(make_user("Root", superuser=True)), rows()
    said, faults, rules = watched(page), list[str](), TAGS
    for width, scheme in each_look(page):  # loaded in each: Django's own colours change slowly, without motion too
        faults += check(page, f"{web}{reverse('admin:index')}", said, rules)
        for name, words in made.items():
            faults += check(page, f"{web}{reverse(f'admin:{name}_changelist')}?q={words}", said, rules)
            shown, hidden = page.locator("#result_list tbody tr").count(), page.evaluate(OUT_OF_SIGHT)
            faults += [] if shown else [f"{name}: nothing is found by {words}"]
            faults += [f"{name}, {width} {scheme}: {hidden} cells out of sight or without a label"] if hidden else []
        rules = ONCE_MORE
    assert faults == []


INLINE = {"a", "span", "b", "strong", "em", "code", "i", "small", "time", "label"}
RUN_TOGETHER = re.compile(r"[a-z)”][.!?:;,][A-Z“]\w|[a-z][A-Z][a-z]|[a-z][0-9]+[A-Z]|[a-z]{2}\(|\)[A-Za-z]")


ADDED = (User, Group, Policy, Calendar, Tool, RetentionPolicy, Hold, Webhook)  # whose rows people add by a form


def lines(page: str) -> Iterator[str]:
    """Yield the words that are drawn in one line, as they are drawn."""
    found = BeautifulSoup(page, "html.parser").select_one("#content, body")
    assert found is not None
    for gone in found.select("script, style, svg, .visually-hidden, template, option, input, textarea"):
        gone.decompose()
    for line in _parts(found).split("\n"):
        if line.strip():
            yield " ".join(line.split())


def _parts(element: Tag) -> str:
    inner = "".join(
        _parts(each) if isinstance(each, Tag) else re.sub(r"\s+", " ", str(each)) for each in element.children
    )
    return inner if element.name in INLINE else f"\n{inner}\n"


def run_together(page: str) -> list[str]:
    return [line for line in lines(page) if RUN_TOGETHER.search(re.sub(r"“\w+”|\b(hp|whsec)_\S+", "", line))]


def test_words_that_run_together_are_found() -> None:
    assert run_together("<body><p><b>Deleted.</b>What <a>stays</a></p></body>") == ["Deleted.What stays"]
    assert run_together("<body><p>Deleted.</p><p>What <b>stays</b>: all.</p></body>") == []


@pytest.mark.whole_database
def test_no_words_of_the_administration_run_together() -> None:
    rows_of_other_tests = {
        model: set(model._default_manager.values_list("pk", flat=True)) for model in admin.site._registry
    }
    root, team = confirmed(make_user("Root", superuser=True)), make_team()
    policy = make_policy(team, quorum=2)
    decide(make_gate(policy=policy), make_user("Ann", team))
    milder = Policy(team=team, name=policy.name)
    changes.save(milder, groups=(), people=(), by=make_user("Will", superuser=True))
    run, held = ended(30), ended(30)
    keep(run, keep_last=10)
    keep(held, keep_last=10)
    root.post(reverse("admin:checkpoints_hold_add"), {"run_number": held.pk, "reason": "All of it"})
    pruned()
    looked()
    found = dict[str, list[str]]()
    for model in admin.site._registry:
        base = f"admin:{model._meta.app_label}_{model._meta.model_name}"
        addresses = [reverse(f"{base}_changelist")]
        addresses += [reverse(f"{base}_add")] if model in ADDED else []
        for row in model._default_manager.exclude(pk__in=rows_of_other_tests[model]).order_by("-pk")[:2]:
            addresses += [reverse(f"{base}_{what}", args=[row.pk]) for what in ("change", "history")]
        pages = ((address, root.get(address, follow=True)) for address in addresses)
        found |= {address: wrong for address, page in pages if (wrong := run_together(page.content.decode()))}
    assert found == {}
