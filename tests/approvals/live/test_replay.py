"""What a page missed is told to it as it would have been live, and each page of a batch by itself.

A page was replayed what happened after its person had lost their access, by the access that it had before. Missed
events of which one was `database.restored` were halved for ever: the socket came again with the same cursor, and the
error closed up to two hundred others. Reviewers of another team were replayed no words at their gates.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import timedelta

import pytest
from django.contrib.auth.models import Group, User
from django.db import transaction
from django.utils import timezone

from approvals.assignments import away
from approvals.gates import remarks
from approvals.live import replay
from approvals.live.access import Access, WatchedPage, accesses
from approvals.live.facts import audience
from approvals.live.replay import missed
from approvals.models import Policy
from checkpoints.actors import Actor
from checkpoints.events import commit_order, event_log
from checkpoints.models import Event
from tests.factories import make_gate, make_policy, make_team, make_user
from tests.factories.people import READER, REVIEWER
from tests.harness import horizon
from tests.harness.racing_threads import race
from tests.harness.sent_statements import sent
from tests.harness.signed_in_clients import session_of

BY = Actor("user:7", "Ann")
MOST = 6


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replay, "REPLAYED", MOST)


def happen(team: Group, count: int) -> None:
    with transaction.atomic():
        for number in range(count):
            event_log.record("test.said", subject=f"test:{number}", by=BY, team_id=team.pk, data={})


def restore() -> None:
    event_log.record("database.restored", subject="database", by=BY, data={})


def now() -> commit_order.Cursor:
    horizon.reached()
    return commit_order.newest_cursor()


def page_of(user: User, *subjects: str) -> Access:
    (access,) = accesses([WatchedPage(session_of(user), frozenset(subjects))])
    assert access is not None
    return access


@pytest.mark.parametrize("before", [0, 1, MOST], ids=lambda count: f"{count} events before")
def test_a_page_that_slept_through_a_restore_is_told_to_start_over(before: int) -> None:
    team = make_team()
    access, since = page_of(make_user("Ann", team)), now()
    happen(team, before)
    restore()
    happen(team, MOST - before)
    horizon.reached()
    with sent() as statements:
        assert missed([(access, since)]) == [None]
    assert len(statements) <= 3


def test_one_page_that_slept_takes_no_others_with_it() -> None:
    team, other = make_team(), make_team()
    slept, awake = page_of(make_user("Ann", team)), page_of(make_user("Ben", other))
    since = now()
    restore()
    happen(team, MOST)
    newest = now()
    happen(other, 2)
    horizon.reached()
    told = missed([(awake, newest), (slept, since), (slept, newest), (awake, newest)])
    assert [each if each is None else len(each) for each in told] == [2, None, 0, 2]


def test_many_who_missed_too_much_together_are_each_told_what_they_missed() -> None:
    pages = [page_of(make_user(f"Ann {number}", make_team())) for number in range(5)]
    since = now()
    for access in pages:
        happen(Group.objects.get(pk=min(access.teams)), MOST - 1)
    horizon.reached()
    told = missed([(access, since) for access in pages])
    assert [len(each or []) for each in told] == [MOST - 1] * 5


def cast() -> tuple[Policy, list[User]]:
    """A member of the run's team, a reviewer of another, somebody whom the policy names, and one who stands in."""
    support, finance = make_team(), make_team("Finance", may=REVIEWER)
    common = make_team("Common", may=READER)
    member, reviewer, named = make_user("Mem", support), make_user("Mira", finance, common), make_user("Nina")
    stands_in = make_user("Stan", common)
    start = timezone.now() - timedelta(minutes=1)
    away.make(reviewer, delegate=stands_in, starts=start, ends=start + timedelta(days=1))
    return make_policy(support, groups=(finance,), people=(named,)), [member, reviewer, named, stands_in]


@pytest.mark.parametrize("who", range(4), ids=["member", "reviewer of another team", "named", "stands in"])
def test_whoever_watches_a_gate_is_replayed_the_words_there_as_they_hear_them_live(who: int) -> None:
    policy, readers = cast()
    gate = make_gate(policy=policy)
    access, since = page_of(readers[who], f"gate:{gate.pk}"), now()
    remarks.remark(gate, by=make_user("Ann", policy.team), text="Look again", key="k1")
    horizon.reached()
    live = [
        event.kind
        for event in commit_order.events_after(Event.objects.order_by("xid", "id"), since)
        if not access.joins.isdisjoint(audience(event))
    ]
    (told,) = missed([(access, since)])
    assert [fact["kind"] for fact in told or []] == live == ["gate.remarked"]


def test_access_and_events_are_of_one_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Between the two somebody left their team, and was replayed what happened there afterwards."""
    team = make_team()
    member = make_user("Ann", team)
    page, since = WatchedPage(session_of(member)), now()

    def change() -> None:
        member.groups.clear()
        happen(team, 1)
        horizon.reached()

    def read(asked: Collection[WatchedPage]) -> list[Access | None]:
        found = accesses(asked)
        assert race([change]) == [None]
        return found

    monkeypatch.setattr(replay, "accesses", read)
    assert replay.read_missed([(WatchedPage(None), since), (page, since)]) == [[], []]
    monkeypatch.undo()
    assert replay.read_missed([(page, since)]) == [[]], "and is replayed nothing of it later"
