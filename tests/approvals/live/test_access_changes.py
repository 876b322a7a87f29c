"""Whose access changes hears no more of it at once, not only from the next heartbeat on.

For up to fifteen seconds somebody who had left a team was told the titles of its new gates, and whoever stood in for
them too. A page that connected just then was told of what happened after the loss, by the access of before.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from channels.db import database_sync_to_async
from django.contrib.auth.models import Group, User
from django.urls import reverse
from django.utils import timezone

from approvals.assignments import away
from approvals.live import consumer, replay
from approvals.live.consumer import REVOKED
from approvals.live.facts import Fact
from approvals.models import Delegation, Gate, Policy
from checkpoints.events import commit_order
from tests.approvals.admin.test_people_admin import account_form, team_form
from tests.approvals.live.test_socket import socket, tell
from tests.factories import make_gate, make_policy, make_team, make_user
from tests.factories.people import READER, REVIEWER
from tests.harness import horizon
from tests.harness.signed_in_clients import confirmed

READS = ("checkpoints.view_run",)


def order(address: str, form: dict[str, object]) -> None:
    """Have an administrator send a form."""
    assert confirmed(make_user("Root", superuser=True)).post(address, form).status_code == 302


def may_of(team: Group) -> list[str]:
    return [f"{may.content_type.app_label}.{may.codename}" for may in team.permissions.select_related("content_type")]


def leaves_by_their_own_page(user: User, team: Group) -> None:
    order(reverse("admin:auth_user_change", args=[user.pk]), account_form(user, groups=[]))


def leaves_by_the_teams_page(user: User, team: Group) -> None:
    order(reverse("admin:auth_group_change", args=[team.pk]), team_form(team, team.name, [], may_of(team)))


def whose_team_may_less(user: User, team: Group) -> None:
    order(reverse("admin:auth_group_change", args=[team.pk]), team_form(team, team.name, [user], []))


def is_switched_off(user: User, team: Group) -> None:
    form = account_form(user)
    del form["is_active"]
    order(reverse("admin:auth_user_change", args=[user.pk]), form)


LOSSES = [leaves_by_their_own_page, leaves_by_the_teams_page, whose_team_may_less]


@pytest.mark.parametrize("lose", LOSSES, ids=lambda each: str(each.__name__))
async def test_who_may_no_longer_see_a_team_hears_no_title_of_it(lose: Callable[[User, Group], None]) -> None:
    team = await database_sync_to_async(make_team)(may=READS)
    member = await database_sync_to_async(make_user)("Mem", team)
    async with socket(member) as page:
        since = await database_sync_to_async(commit_order.newest_cursor)()
        await database_sync_to_async(lose)(member, team)
        await database_sync_to_async(make_gate)(team=team)
        await tell(since)  # the change and the gate in one batch
        assert [fact["kind"] for fact in await page.hear_all()] == []


async def test_the_page_of_an_account_that_was_switched_off_is_closed() -> None:
    member = await database_sync_to_async(make_user)("Mem", await database_sync_to_async(make_team)())
    async with socket(member) as page:
        since = await database_sync_to_async(commit_order.newest_cursor)()
        await database_sync_to_async(is_switched_off)(member, Group())
        await tell(since)
        assert await page.closed_with() == REVOKED


async def test_who_joins_a_team_hears_of_it_from_then_on() -> None:
    team = await database_sync_to_async(make_team)(may=READS)
    newcomer = await database_sync_to_async(make_user)("New")
    async with socket(newcomer) as page:
        since = await database_sync_to_async(commit_order.newest_cursor)()
        address = reverse("admin:auth_group_change", args=[team.pk])
        form = await database_sync_to_async(team_form)(team, team.name, [newcomer], list(READS))
        await database_sync_to_async(order)(address, form)
        await tell(since)
        assert await page.hear_all() == []
        since = await database_sync_to_async(commit_order.newest_cursor)()
        gate = await database_sync_to_async(make_gate)(team=team)
        await tell(since)
        assert gate.subject in {fact["subject"] for fact in await page.hear_all()}


async def test_who_stands_in_hears_it_while_they_do() -> None:
    def begin() -> tuple[User, Policy, Delegation]:
        finance, common = make_team("Finance", may=REVIEWER), make_team("Common", may=READER)
        ann, nina = make_user("Ann", finance, common), make_user("Nina", common)
        start = timezone.now() - timedelta(minutes=1)
        made = away.make(ann, delegate=nina, starts=start, ends=start + timedelta(days=1))
        return nina, make_policy(make_team(), groups=(finance,)), made

    async def heard_after(change: Callable[[], object]) -> list[str]:
        since = await database_sync_to_async(commit_order.newest_cursor)()
        await database_sync_to_async(change)()
        gate: Gate = await database_sync_to_async(make_gate)(policy=policy)
        await tell(since)
        return [fact["kind"] for fact in await page.hear_all() if fact["subject"] == gate.subject]

    nina, policy, made = await database_sync_to_async(begin)()
    async with socket(nina) as page:
        assert await heard_after(lambda: None) == ["gate.opened"]
        assert await heard_after(lambda: away.end(made, by=made.person)) == []


@pytest.mark.parametrize("policies", [[], ["refunds"]], ids=["all gates", "one policy"])
@pytest.mark.parametrize("lose", [*LOSSES, is_switched_off], ids=lambda each: str(each.__name__))
async def test_who_stands_in_for_somebody_who_may_no_longer_hears_no_title_either(
    lose: Callable[[User, Group], None], policies: list[str]
) -> None:
    def begin() -> tuple[User, User, Group, Policy]:
        finance, common = make_team("Finance", may=REVIEWER), make_team("Common", may=READER)
        ann, nina, policy = make_user("Ann", finance, common), make_user("Nina", common), make_policy(groups=(finance,))
        start = timezone.now() - timedelta(minutes=1)
        away.make(ann, delegate=nina, starts=start, ends=start + timedelta(days=1), policies=policies)
        return ann, nina, finance, policy

    ann, nina, finance, policy = await database_sync_to_async(begin)()
    async with socket(nina) as page:
        since = await database_sync_to_async(commit_order.newest_cursor)()
        before: Gate = await database_sync_to_async(make_gate)(policy=policy)
        await tell(since)
        assert before.subject in {fact["subject"] for fact in await page.hear_all()}
        since = await database_sync_to_async(commit_order.newest_cursor)()
        await database_sync_to_async(lose)(ann, finance)
        gate: Gate = await database_sync_to_async(make_gate)(policy=policy)
        await tell(since)
        assert gate.subject not in {fact["subject"] for fact in await page.hear_all()}


@pytest.mark.parametrize("lose", LOSSES, ids=lambda each: str(each.__name__))
async def test_who_loses_access_while_their_page_connects_is_replayed_nothing_of_it(
    lose: Callable[[User, Group], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    team = await database_sync_to_async(make_team)(may=READS)
    member = await database_sync_to_async(make_user)("Mem", team)
    since = await database_sync_to_async(commit_order.newest_cursor)()
    look_back = consumer.look_back

    def change() -> None:
        lose(member, team)
        make_gate(team=team)
        horizon.reached()

    async def later(asked: replay.PageSince) -> list[Fact] | None:
        await database_sync_to_async(change)()
        return await look_back(asked)

    monkeypatch.setattr(consumer, "look_back", later)
    async with socket(member, after=since) as page:
        assert [fact["kind"] for fact in await page.hear_all()] == []
