"""Who hears of what: asked for many pages at once, as soon as it changes, and of what a page has missed.

For up to fifteen seconds somebody who had left a team was told the titles of its new gates, and whoever stood in for
them too. A page was replayed what happened after its person had lost their access, by the access that it had before.
"""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import Callable, Collection
from datetime import timedelta
from typing import Any

import pytest
from channels.db import database_sync_to_async
from django.contrib.auth.models import Group, User
from django.contrib.sessions.models import Session
from django.db import transaction
from django.urls import reverse
from django.utils import timezone

from approvals.assignments import away
from approvals.gates import remarks
from approvals.live import batched_questions, consumer, replay
from approvals.live.access import Access, WatchedPage, access_of, accesses
from approvals.live.batched_questions import Batched
from approvals.live.consumer import REVOKED
from approvals.live.facts import Fact, audience, fact_of
from approvals.live.replay import missed
from approvals.models import Delegation, Gate, Policy
from approvals.sessions import SessionStore, digest_of_key
from checkpoints.access.permissions import teams_of, teams_where
from checkpoints.actors import Actor
from checkpoints.events import commit_order, event_log
from checkpoints.models import Event, Run
from checkpoints.values.canonical_json import encode_canonical
from tests.approvals.admin.test_people_admin import account_form, team_form
from tests.approvals.live.test_socket import a_member, happens, socket
from tests.factories import ann, bob, eve, make_gate, make_policy, make_run, make_team, make_user
from tests.factories.people import READER, REVIEWER
from tests.harness import horizon
from tests.harness.racing_threads import race
from tests.harness.sent_statements import sent
from tests.harness.signed_in_clients import confirmed, session_of

RIGHTS = ("checkpoints.view_run", "approvals.decide_gate", "approvals.view_gate")
READS = ("checkpoints.view_run",)
BY = Actor("user:7", "Ann")
MOST = 6


def cast() -> tuple[list[User], list[Gate], list[Run]]:
    """People with every kind of right, and gates and runs of every kind of team."""
    support, finance, empty = make_team(), make_team("Finance", may=REVIEWER), make_team("Empty", may=())
    own, stray = make_user("own", empty, may=RIGHTS), make_user("stray", may=RIGHTS)
    people = [ann(support), bob(finance), eve(), own, stray, make_user("root", superuser=True)]
    people += [make_user("both", support, finance), make_user("rooted", finance, superuser=True)]
    policies = [make_policy(support, name="lent", groups=(finance,)), make_policy(finance, name="theirs")]
    policies += [make_policy(empty, name="empty"), make_policy(support, name="wide", groups=(finance, empty))]
    make_policy(support, name="default")
    gates = [make_gate(policy=policy) for policy in policies] + [make_gate(team=support), make_gate()]
    gates[4].replaces.add(gates[0])
    runs = [make_run(team=team) for team in (support, finance, empty)] + [make_run()]
    return people, gates, runs


def test_many_pages_are_answered_as_the_rules_answer_each() -> None:
    people, gates, runs = cast()
    subjects = frozenset({f"gate:{gate.pk}" for gate in gates} | {f"run:{run.pk}" for run in runs})
    asked = [WatchedPage(session_of(person), subjects) for person in people]
    random.Random(3).shuffle(asked)
    answers = {access.user: access for access in accesses(asked) if access is not None}
    teams = teams_of({each.pk for each in people}, *RIGHTS)
    assert set(answers) == set(people)
    seen = set()
    for person in people:
        answer = answers[person]
        sees, decides = (set(teams_where(person, name).values_list("pk", flat=True)) for name in RIGHTS[:2])
        assert answer.teams == sees
        for name in RIGHTS:
            assert teams[person.pk, name] == set(teams_where(person, name).values_list("pk", flat=True)), name
        assert answer.groups == {f"team.{pk}" for pk in sees} | {f"reviewers.{pk}" for pk in decides} | {
            f"named.{person.pk}"
        }
        visible = {f"gate.{gate.pk}" for gate in Gate.objects.visible_to(person).filter(pk__in=[g.pk for g in gates])}
        visible |= {f"run.{run.pk}" for run in Run.objects.visible_to(person).filter(pk__in=[r.pk for r in runs])}
        assert answer.watched == visible
        seen.add(answer.watched)
    assert len(seen) > 4, "people who see the same would show nothing"


def test_an_ended_or_overdue_session_a_changed_password_and_a_switched_off_account_hear_nothing() -> None:
    team = make_team()
    people = [make_user(f"reader-{n}", team) for n in range(6)]
    keys = [session_of(person) for person in people]
    SessionStore(keys[1]).flush()
    Session.objects.filter(session_key=digest_of_key(keys[2])).update(expire_date=timezone.now() - timedelta(seconds=1))
    people[3].set_password("another-word-1")
    people[3].save()
    User.objects.filter(pk=people[4].pk).update(is_active=False)
    Session.objects.filter(session_key=digest_of_key(keys[5])).update(session_data="junk")
    answers = accesses([WatchedPage(key) for key in [*keys, None, "never"]])
    assert [access.user.pk if access else None for access in answers] == [people[0].pk, *[None] * 7]


def test_a_session_made_under_the_key_before_still_counts_and_one_of_a_backend_no_longer_used_does_not(
    settings: Any,
) -> None:
    key, other = session_of(ann(make_team())), SessionStore(session_of(bob(make_team("Finance"))))
    other["_auth_user_backend"] = "somebody.elses.Backend"
    other.save()
    assert accesses([WatchedPage(other.session_key)]) == [None]
    settings.SECRET_KEY_FALLBACKS, settings.SECRET_KEY = [settings.SECRET_KEY], "a-newer-one"
    assert access_of(key) is not None


def test_a_cookie_that_is_no_key_fails_nobody_who_asks_beside_it() -> None:
    """One with a NUL, by somebody who had not signed in, failed the statement and with it the whole batch."""
    reader = ann(make_team())
    odd = SessionStore()  # `"²".isdigit()`, which PostgreSQL cannot read as a number
    odd.update({"_auth_user_id": "²", "_auth_user_backend": "django.contrib.auth.backends.ModelBackend"})
    odd.save()
    keys = [session_of(reader), "\0aaaaaaaaaa", "é" * 32, "a" * 9000, odd.session_key]
    junk = {"gate:", "gate:-1", "gate:1:2", "gate:٣", "run:1e3", "looking:4", f"run:{'9' * 30}", "", "gate"}
    found, *others = accesses([WatchedPage(key, frozenset(junk)) for key in keys])
    assert isinstance(found, Access)
    assert (found.user, found.watched, others) == (reader, frozenset(), [None] * 4)


def test_many_pages_take_as_many_statements_as_one() -> None:
    people, gates, runs = cast()
    keys = [session_of(person) for person in people]
    every = frozenset({f"gate:{gate.pk}" for gate in gates} | {f"run:{run.pk}" for run in runs})
    with sent() as one:
        accesses([WatchedPage(keys[0], every)])
    with sent() as many:
        accesses([WatchedPage(keys[n % len(keys)], every) for n in range(100)])
    assert len(many) == len(one) == 5


def order(address: str, form: dict[str, object]) -> None:
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
async def test_who_may_no_longer_see_a_team_hears_no_title_of_it(lose: Callable[[User, Group], object]) -> None:
    team = await database_sync_to_async(make_team)(may=READS)
    member = await database_sync_to_async(make_user)("Mem", team)
    async with socket(member) as page:
        await happens(lambda: (lose(member, team), make_gate(team=team)))  # in one batch
        assert [fact["kind"] for fact in await page.hear_all()] == []


async def test_the_page_of_an_account_that_was_switched_off_is_closed() -> None:
    member, team = await a_member()
    async with socket(member) as page:
        await happens(lambda: is_switched_off(member, team))
        assert await page.closed_with() == REVOKED


async def test_who_joins_a_team_hears_of_it_from_then_on() -> None:
    team = await database_sync_to_async(make_team)(may=READS)
    newcomer = await database_sync_to_async(make_user)("New")
    address = reverse("admin:auth_group_change", args=[team.pk])
    async with socket(newcomer) as page:
        await happens(lambda: order(address, team_form(team, team.name, [newcomer], list(READS))))
        assert await page.hear_all() == []
        gate = await happens(lambda: make_gate(team=team))
        assert gate.subject in {fact["subject"] for fact in await page.hear_all()}


async def test_who_stands_in_hears_it_while_they_do() -> None:
    def begin() -> tuple[User, Policy, Delegation]:
        finance, common = make_team("Finance", may=REVIEWER), make_team("Common", may=READER)
        ann, nina = make_user("Ann", finance, common), make_user("Nina", common)
        start = timezone.now() - timedelta(minutes=1)
        made = away.make(ann, delegate=nina, starts=start, ends=start + timedelta(days=1))
        return nina, make_policy(make_team(), groups=(finance,)), made

    nina, policy, made = await database_sync_to_async(begin)()
    async with socket(nina) as page:
        for change, kinds in ((lambda: None, ["gate.opened"]), (lambda: away.end(made, by=made.person), [])):
            _, gate = await happens(lambda change=change: (change(), make_gate(policy=policy)))  # type: ignore[misc]
            assert [each["kind"] for each in await page.hear_all() if each["subject"] == gate.subject] == kinds


@pytest.mark.parametrize(
    ("lose", "policies"),
    [(leaves_by_the_teams_page, []), (whose_team_may_less, ["refunds"]), (is_switched_off, [])],
    ids=lambda each: getattr(each, "__name__", None),
)
async def test_who_stands_in_for_somebody_who_may_no_longer_hears_no_title_either(
    lose: Callable[[User, Group], object], policies: list[str]
) -> None:
    def begin() -> tuple[User, User, Group, Policy]:
        finance, common = make_team("Finance", may=REVIEWER), make_team("Common", may=READER)
        ann, nina, policy = make_user("Ann", finance, common), make_user("Nina", common), make_policy(groups=(finance,))
        start = timezone.now() - timedelta(minutes=1)
        away.make(ann, delegate=nina, starts=start, ends=start + timedelta(days=1), policies=policies)
        return ann, nina, finance, policy

    ann, nina, finance, policy = await database_sync_to_async(begin)()
    async with socket(nina) as page:
        before = await happens(lambda: make_gate(policy=policy))
        assert before.subject in {fact["subject"] for fact in await page.hear_all()}
        _, gate = await happens(lambda: (lose(ann, finance), make_gate(policy=policy)))
        assert gate.subject not in {fact["subject"] for fact in await page.hear_all()}


async def test_who_loses_access_while_their_page_connects_is_replayed_nothing_of_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    team = await database_sync_to_async(make_team)(may=READS)
    member = await database_sync_to_async(make_user)("Mem", team)
    since = await database_sync_to_async(commit_order.newest_cursor)()
    look_back = consumer.look_back

    def change() -> None:
        leaves_by_the_teams_page(member, team)
        make_gate(team=team)
        horizon.reached()

    async def later(asked: replay.PageSince) -> list[Fact] | None:
        await database_sync_to_async(change)()
        return await look_back(asked)

    monkeypatch.setattr(consumer, "look_back", later)
    async with socket(member, after=since) as page:
        assert [fact["kind"] for fact in await page.hear_all()] == []


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


@pytest.mark.parametrize("before", [0, MOST], ids=lambda count: f"{count} events before")
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
    gate, crowded = make_gate(team=other), now()
    for number in range(MOST + 1):
        remarks.remark(gate, by=make_user("Bo", other), text="So be it.", key=str(number))
    happen(team, 1)
    horizon.reached()
    assert missed([(slept, crowded)]) == [None], "others' gates used up the look, and its own was never told"


def test_many_who_missed_too_much_together_are_each_told_what_they_missed() -> None:
    pages = [page_of(make_user(f"Ann {number}", make_team())) for number in range(5)]
    since = now()
    for access in pages:
        happen(Group.objects.get(pk=min(access.teams)), MOST - 1)
    horizon.reached()
    told = missed([(access, since) for access in pages])
    assert [len(each or []) for each in told] == [MOST - 1] * 5


def readers_of_a_policy() -> tuple[Policy, list[User]]:
    """A member of the run's team, a reviewer of another, somebody whom the policy names, and one who stands in."""
    support, finance = make_team(), make_team("Finance", may=REVIEWER)
    common = make_team("Common", may=READER)
    member, reviewer, named = make_user("Mem", support), make_user("Mira", finance, common), make_user("Nina")
    stands_in = make_user("Stan", common)
    start = timezone.now() - timedelta(minutes=1)
    away.make(reviewer, delegate=stands_in, starts=start, ends=start + timedelta(days=1))
    return make_policy(support, groups=(finance,), people=(named,)), [member, reviewer, named, stands_in]


def test_whoever_watches_a_gate_is_replayed_the_words_there_as_they_hear_them_live() -> None:
    policy, readers = readers_of_a_policy()
    gate = make_gate(policy=policy)
    pages, since = [page_of(reader, f"gate:{gate.pk}") for reader in readers], now()
    remarks.remark(gate, by=make_user("Ann", policy.team), text="Look again", key="k1")
    horizon.reached()
    events = list(commit_order.events_after(Event.objects.order_by("xid", "id"), since))
    for access in pages:
        live = [event.kind for event in events if not access.joins.isdisjoint(audience(event))]
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


def make_event(kind: str, subject: str, *, data: dict[str, Any] | None = None, **fields: Any) -> Event:
    """An event of run 7 of team 3, that was never saved."""
    given: dict[str, Any] = {"pk": 5, "xid": 9, "run_id": 7, "team_id": 3, "version": 2, "actor": "system"}
    return Event(kind=kind, subject=subject, data=encode_canonical(data or {}), **(given | fields))


NOWHERE = {"run_id": None, "team_id": None}


AUDIENCES: list[tuple[str, str, dict[str, Any], dict[str, Any], list[str]]] = [
    ("checkpoint.saved", "checkpoint:x", {}, {}, ["run.7"]),
    ("gate.opened", "gate:42", {"reviewers": [3, 8, "x", None]}, {},
     ["team.3", "reviewers.3", "reviewers.8", "gate.42", "run.7"]),
    ("run.started", "run:7", {"reviewers": [8]}, {}, ["team.3", "run.7"]),
    ("user.changed", "user:5", {}, NOWHERE, ["user.5", "lends.5"]),
    ("delegation.ended", "delegation:1", {"delegate": "user:6"}, NOWHERE, ["user.6", "lends.6"]),
    ("team.changed", "team:3", {"joined": [7], "left": [8]}, {"run_id": None},
     ["user.7", "lends.7", "user.8", "lends.8", "reviewers.3", "lent.3", "team.3"]),
    ("seal.made", "seal:1", {}, NOWHERE, []),
]  # fmt: skip


def test_an_event_is_told_to_those_whom_it_is_about_and_to_nobody_else() -> None:
    for kind, subject, data, fields, told in AUDIENCES:
        assert audience(make_event(kind, subject, data=data, **fields)) == told, kind


def test_who_waits_for_a_signal_hears_of_signals_and_of_the_runs_end_alone() -> None:
    """They heard of all that a busy run did, and asked again each time."""
    for kind in ("signal.received", "run.completed", "run.failed", "run.cancelled"):
        assert audience(make_event(kind, "run:7")) == ["team.3", "run.7", "signals.7"]
    for kind in ("checkpoint.saved", "run.waiting", "run.queued", "timer.skipped", "gate.opened"):
        assert "signals.7" not in audience(make_event(kind, "run:7"))


def test_a_fact_says_what_happened_and_carries_nothing_else_of_the_data() -> None:
    data = {"title": "Pay?", "reviewers": [3], "secret": "card 4417"}
    fact = fact_of(make_event("gate.opened", "gate:42", data=data), {"gate:42": "Refund?", "gate:43": "Other"})
    assert fact == {
        "cursor": "9.5", "kind": "gate.opened", "subject": "gate:42", "run": "run:7", "version": 2, "title": "Refund?",
    }  # fmt: skip


class Slow:
    """Answers with the tenfold; each batch waits for its turn."""

    def __init__(self) -> None:
        self.batches: list[list[int]] = []
        self.turns = threading.Semaphore(0)

    def answer(self, asked: list[int]) -> list[int]:
        self.batches.append(asked)
        assert self.turns.acquire(timeout=30)
        if 13 in asked:
            raise ValueError("thirteen")
        return [each * 10 for each in asked]


async def asked_by(slow: Slow, batches: int) -> None:
    async with asyncio.timeout(30):
        while len(slow.batches) < batches:
            await asyncio.sleep(0)


async def test_a_storm_is_answered_in_batches_of_a_bounded_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batched_questions, "MOST", 2)
    slow = Slow()
    slow.turns.release(9)
    ask = Batched(slow.answer)
    assert await asyncio.gather(*(ask(n) for n in range(5))) == [0, 10, 20, 30, 40]
    assert [len(batch) for batch in slow.batches] == [2, 2, 1]


async def test_what_fails_is_told_to_whom_it_is_about_alone() -> None:
    """One page that slept through a restore closed the sockets of two hundred others."""
    slow = Slow()
    slow.turns.release(9)
    ask = Batched(slow.answer)
    told = await asyncio.gather(ask(13), ask(1), return_exceptions=True)
    assert [str(each) for each in told] == ["thirteen", "10"]
    assert await ask(2) == 20


async def test_a_page_that_goes_away_takes_no_other_with_it() -> None:
    slow = Slow()
    ask = Batched(slow.answer)
    gone, stays = asyncio.create_task(ask(1)), asyncio.create_task(ask(2))
    await asked_by(slow, 1)
    waits = asyncio.create_task(ask(3))
    await asyncio.sleep(0)
    gone.cancel()
    slow.turns.release(9)
    assert [await stays, await waits] == [20, 30]
    with pytest.raises(asyncio.CancelledError):
        await gone
