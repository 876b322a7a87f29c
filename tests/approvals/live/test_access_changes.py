"""Whose access changes hears no more of it at once, not only from the next heartbeat on.

For up to fifteen seconds somebody who had left a team was told the titles of its new gates.
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
from approvals.live.consumer import REVOKED
from approvals.models import Delegation, Gate, Policy
from checkpoints.events import commit_order
from tests.approvals.admin.test_people_admin import account_form, team_form
from tests.approvals.live.test_socket import socket, tell
from tests.factories import make_gate, make_policy, make_team, make_user
from tests.factories.people import READER, REVIEWER
from tests.harness.signed_in_clients import confirmed

READS = ("checkpoints.view_run",)


def order(address: str, form: dict[str, object]) -> None:
    """Have an administrator send a form."""
    assert confirmed(make_user("Root", superuser=True)).post(address, form).status_code == 302


def leaves_by_their_own_page(user: User, team: Group) -> None:
    order(reverse("admin:auth_user_change", args=[user.pk]), account_form(user, groups=[]))


def leaves_by_the_teams_page(user: User, team: Group) -> None:
    order(reverse("admin:auth_group_change", args=[team.pk]), team_form(team, team.name, [], list(READS)))


def whose_team_may_less(user: User, team: Group) -> None:
    order(reverse("admin:auth_group_change", args=[team.pk]), team_form(team, team.name, [user], []))


LOSSES = [leaves_by_their_own_page, leaves_by_the_teams_page, whose_team_may_less]


@pytest.mark.parametrize("lose", LOSSES, ids=lambda each: str(each.__name__))
async def test_who_may_no_longer_see_a_team_hears_no_title_of_it(lose: Callable[[User, Group], None]) -> None:
    team = await database_sync_to_async(make_team)(may=READS)
    member = await database_sync_to_async(make_user)("Mem", team)
    async with socket(member) as page:
        since = await database_sync_to_async(commit_order.newest)()
        await database_sync_to_async(lose)(member, team)
        await database_sync_to_async(make_gate)(team=team)
        await tell(since)  # the change and the gate in one batch
        assert [fact["kind"] for fact in await page.hear_all()] == []


async def test_the_page_of_an_account_that_was_switched_off_is_closed() -> None:
    member = await database_sync_to_async(make_user)("Mem", await database_sync_to_async(make_team)())

    def switch_off() -> None:
        form = account_form(member)
        del form["is_active"]
        order(reverse("admin:auth_user_change", args=[member.pk]), form)

    async with socket(member) as page:
        since = await database_sync_to_async(commit_order.newest)()
        await database_sync_to_async(switch_off)()
        await tell(since)
        assert await page.closed_with() == REVOKED


async def test_who_joins_a_team_hears_of_it_from_then_on() -> None:
    team = await database_sync_to_async(make_team)(may=READS)
    newcomer = await database_sync_to_async(make_user)("New")
    async with socket(newcomer) as page:
        since = await database_sync_to_async(commit_order.newest)()
        address = reverse("admin:auth_group_change", args=[team.pk])
        form = await database_sync_to_async(team_form)(team, team.name, [newcomer], list(READS))
        await database_sync_to_async(order)(address, form)
        await tell(since)
        assert await page.hear_all() == []
        since = await database_sync_to_async(commit_order.newest)()
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
        since = await database_sync_to_async(commit_order.newest)()
        await database_sync_to_async(change)()
        gate: Gate = await database_sync_to_async(make_gate)(policy=policy)
        await tell(since)
        return [fact["kind"] for fact in await page.hear_all() if fact["subject"] == gate.subject]

    nina, policy, made = await database_sync_to_async(begin)()
    async with socket(nina) as page:
        assert await heard_after(lambda: None) == ["gate.opened"]
        assert await heard_after(lambda: away.end(made, by=made.person)) == []
