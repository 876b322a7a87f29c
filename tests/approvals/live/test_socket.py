"""The socket: who is told what, what is replayed, and when it is closed."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import pytest
from asgiref.sync import async_to_sync
from channels.db import database_sync_to_async
from channels.layers import get_channel_layer
from django.contrib.auth.models import User
from django.db import OperationalError

from approvals.live import consumer, frame_rate, presence, replay
from approvals.live.access import Access, WatchedPage
from approvals.live.channel_layer import PageLayer
from approvals.live.consumer import LiveConsumer
from approvals.live.facts import Fact
from approvals.sessions import SessionStore
from checkpoints.events import commit_order, tailer
from checkpoints.models import Event
from tests.factories import ann, decide, eve, make_card, make_gate, make_policy, make_team, mira
from tests.harness import horizon
from tests.harness.open_sockets import Socket
from tests.harness.sent_statements import sent
from tests.harness.signed_in_clients import session_of
from tests.harness.waiting import PATIENCE


class Impatient(LiveConsumer):
    heartbeat = 0.05


@asynccontextmanager
async def socket(
    user: User | None, *, after: object = "", consumer: type[LiveConsumer] = LiveConsumer
) -> AsyncIterator[Socket]:
    """An open socket of a signed-in person."""
    key = await database_sync_to_async(session_of)(user) if user else None
    opened = Socket(consumer, f"after={after}", SessionStore(key))
    await opened.open()
    yield opened
    await opened.close()


async def tell(since: commit_order.Cursor) -> None:
    """Hand on what happened since, as the tailer does."""
    events = await database_sync_to_async(
        lambda: list(commit_order.events_after(Event.objects.order_by("xid", "id"), since))
    )()
    await consumer.deliver(events)


async def test_a_member_hears_of_a_gate_of_their_team_and_an_outsider_does_not() -> None:
    team = await database_sync_to_async(make_team)()
    member, outsider = await database_sync_to_async(ann)(team), await database_sync_to_async(eve)()
    async with socket(member) as mine, socket(outsider) as theirs:
        since = await database_sync_to_async(commit_order.newest_cursor)()
        gate = await database_sync_to_async(make_gate)(team=team)
        await tell(since)
        facts = await mine.hear_all()
        assert [fact for fact in facts if fact["kind"] == "gate.opened" and fact["subject"] == f"gate:{gate.pk}"]
        assert not [fact for fact in facts if fact["kind"] == "checkpoint.saved"]
        assert await theirs.hear_all() == []


async def test_a_fact_that_cannot_be_told_has_every_page_start_over() -> None:
    """All that was read with it was lost to open pages, which went on from a cursor behind it."""
    team = await database_sync_to_async(make_team)()
    member = await database_sync_to_async(ann)(team)
    async with socket(member) as mine:
        await database_sync_to_async(make_gate)(team=team)
        await database_sync_to_async(horizon.reached)()
        newest = await database_sync_to_async(commit_order.newest_cursor)()
        with pytest.raises(ValueError, match="no-number"):
            await consumer.deliver([Event(kind="test.said", subject="gate:no-number", data=b"{}")])
        assert await mine.hear() == {"kind": "reset", "cursor": str(newest)}


async def test_a_fact_of_a_gate_names_its_title_which_no_event_holds_by_one_query_for_all() -> None:
    team = await database_sync_to_async(make_team)()
    member, other = await database_sync_to_async(ann)(team), await database_sync_to_async(mira)(team)
    async with socket(member) as mine, socket(other) as theirs:
        since = await database_sync_to_async(commit_order.newest_cursor)()
        cards = [make_card(title=f"Refund {number} to Marit Ellery") for number in range(3)]
        gates = [await database_sync_to_async(make_gate)(team=team, card=card) for card in cards]
        with sent() as statements:
            await tell(since)
        wanted = {gate.subject: gate.title for gate in gates}
        for heard in (await mine.hear_all(), await theirs.hear_all()):
            told = {fact["subject"]: fact["title"] for fact in heard if fact["kind"] == "gate.opened"}
            assert told == wanted
        assert len([each for each in statements if "approvals_gate" in each]) == 1


async def test_what_is_replayed_names_its_gates_too() -> None:
    team = await database_sync_to_async(make_team)()
    member = await database_sync_to_async(ann)(team)
    since = await database_sync_to_async(commit_order.newest_cursor)()
    gate = await database_sync_to_async(make_gate)(team=team, card=make_card(title="Refund Marit Ellery"))
    await database_sync_to_async(horizon.reached)()
    async with socket(member, after=since) as mine:
        heard = await mine.hear_all()
    assert [fact["title"] for fact in heard if fact["subject"] == gate.subject] == ["Refund Marit Ellery"]


async def test_a_reviewer_from_elsewhere_hears_of_the_gate_and_not_of_the_run() -> None:
    team = await database_sync_to_async(make_team)()
    finance = await database_sync_to_async(make_team)("Finance")
    policy = await database_sync_to_async(make_policy)(team, groups=(finance,))
    reviewer = await database_sync_to_async(mira)(finance)
    async with socket(reviewer) as mine:
        since = await database_sync_to_async(commit_order.newest_cursor)()
        gate = await database_sync_to_async(make_gate)(policy=policy)
        await tell(since)
        assert {fact["subject"] for fact in await mine.hear_all()} == {f"gate:{gate.pk}"}


async def test_a_page_that_comes_before_the_tailer_has_begun_to_read_misses_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What happened between the page's replay and the place from which the tailer read was never told to it."""
    team = await database_sync_to_async(make_team)()
    member = await database_sync_to_async(ann)(team)
    since = await database_sync_to_async(commit_order.newest_cursor)()
    reached = threading.Event()

    def late() -> commit_order.Cursor:
        assert reached.wait(PATIENCE)
        return commit_order.newest_cursor()

    look_back, asked = consumer.look_back, []

    async def looking(question: replay.PageSince) -> list[Fact] | None:
        asked.append(reached.is_set())
        return await look_back(question)

    monkeypatch.setattr(tailer, "newest_cursor", late)
    monkeypatch.setattr(consumer, "look_back", looking)
    async with consumer.reading_along(), socket(member, after=since) as mine:
        async with asyncio.timeout(PATIENCE):
            while not mine.consumer.groups_joined:  # after which it asks at once for what it has missed
                await asyncio.sleep(0)
        gate = await database_sync_to_async(make_gate)(team=team)
        await database_sync_to_async(horizon.reached)()
        reached.set()
        heard = await mine.hear()
        while heard.get("subject") != gate.subject:
            heard = await mine.hear()
    assert heard["kind"] == "gate.opened"
    assert asked == [True]


async def test_what_happened_since_the_page_was_rendered_is_replayed() -> None:
    team = await database_sync_to_async(make_team)()
    member = await database_sync_to_async(ann)(team)
    since = await database_sync_to_async(commit_order.newest_cursor)()
    gate = await database_sync_to_async(make_gate)(team=team)
    await database_sync_to_async(horizon.reached)()
    async with socket(member, after=since) as mine:
        facts = await mine.hear_all()
    assert f"gate:{gate.pk}" in {fact["subject"] for fact in facts}
    newest = facts[-1]["cursor"]
    async with socket(member, after=newest) as again:
        assert await again.hear_all() == []


async def test_what_a_page_heard_by_an_earlier_socket_is_not_told_again_by_a_tailer_that_is_behind() -> None:
    team = await database_sync_to_async(make_team)()
    member = await database_sync_to_async(ann)(team)
    since = await database_sync_to_async(commit_order.newest_cursor)()
    await database_sync_to_async(make_gate)(team=team)
    await database_sync_to_async(horizon.reached)()
    async with socket(member, after=since) as first:
        known = (await first.hear_all())[-1]["cursor"]
    async with socket(member, after=known) as again:
        await tell(since)
        assert await again.hear_all() == []
        later = await database_sync_to_async(make_gate)(team=team)
        await tell(since)
        assert {fact["subject"] for fact in await again.hear_all()} == {later.subject, f"run:{later.run_id}"}


async def test_a_page_that_was_drawn_before_the_database_was_set_back_starts_over() -> None:
    """It heard nothing new, and showed what had not happened any more."""
    member = await database_sync_to_async(ann)(await database_sync_to_async(make_team)())
    async with socket(member, after=commit_order.Cursor(2**60, 1)) as mine:
        newest = await database_sync_to_async(commit_order.newest_cursor)()
        assert await mine.hear() == {"kind": "reset", "cursor": str(newest)}


async def test_steps_of_a_run_are_told_to_pages_that_watch_it_and_only_where_they_may() -> None:
    team = await database_sync_to_async(make_team)()
    member, outsider = await database_sync_to_async(ann)(team), await database_sync_to_async(eve)()
    since = await database_sync_to_async(commit_order.newest_cursor)()
    gate = await database_sync_to_async(make_gate)(team=team)
    async with socket(member) as mine, socket(outsider) as theirs:
        for each in (mine, theirs):
            await each.say({"watch": [f"run:{gate.run_id}", "gate:x", "run:-1", "nonsense"]})
            await each.hear_all()
        await tell(since)
        of_runs = {fact["run"] for fact in await mine.hear_all() if fact["run"]}
        assert of_runs == {f"run:{gate.run_id}"}
        assert await theirs.hear_all() == []


async def test_a_fact_that_comes_by_several_groups_is_told_once() -> None:
    team = await database_sync_to_async(make_team)()
    member = await database_sync_to_async(ann)(team)
    gate = await database_sync_to_async(make_gate)(policy=await database_sync_to_async(make_policy)(team, quorum=2))
    async with socket(member) as mine:
        await mine.say({"watch": [f"gate:{gate.pk}", f"run:{gate.run_id}"]})
        await mine.hear_all()
        since = await database_sync_to_async(commit_order.newest_cursor)()
        await database_sync_to_async(decide)(gate, member)
        await tell(since)
        cursors = [fact["cursor"] for fact in await mine.hear_all()]
        assert cursors
        assert len(cursors) == len(set(cursors))


async def test_a_heartbeat_carries_the_newest_cursor_that_was_heard() -> None:
    team = await database_sync_to_async(make_team)()
    member = await database_sync_to_async(ann)(team)
    async with socket(member, after="7.7", consumer=Impatient) as mine:
        while (said := await mine.hear())["kind"] != "heartbeat":
            pass
        assert commit_order.Cursor.parse(said["cursor"]) >= (7, 7)


async def test_nobody_listens_without_signing_in() -> None:
    async with socket(None) as theirs:
        assert await theirs.closed_with() == 4401


async def test_an_account_that_is_switched_off_hears_nothing_more() -> None:
    member = await database_sync_to_async(ann)(await database_sync_to_async(make_team)())
    async with socket(member, consumer=Impatient) as mine:
        await database_sync_to_async(User.objects.filter(pk=member.pk).update)(is_active=False)
        assert await mine.closed_with() == 4401


async def test_a_new_password_ends_the_sockets_of_the_old_one() -> None:
    member = await database_sync_to_async(ann)(await database_sync_to_async(make_team)())
    async with socket(member, consumer=Impatient) as mine:
        member.set_password("another one")
        await database_sync_to_async(member.save)()
        assert await mine.closed_with() == 4401


async def test_somebody_taken_out_of_a_team_hears_of_it_no_more() -> None:
    team = await database_sync_to_async(make_team)()
    member = await database_sync_to_async(ann)(team)
    async with socket(member, consumer=Impatient) as mine:
        await database_sync_to_async(member.groups.clear)()
        since = await database_sync_to_async(commit_order.newest_cursor)()
        assert (await mine.hear())["kind"] == "heartbeat"
        assert (await mine.hear())["kind"] == "heartbeat"
        await database_sync_to_async(make_gate)(team=team)
        await tell(since)
        for _ in range(3):
            assert (await mine.hear())["kind"] == "heartbeat"


async def test_a_socket_whose_access_cannot_be_checked_is_closed() -> None:
    """The heartbeat ended with the database's error, and the socket stayed open for whoever had lost their access."""

    class Blind(Impatient):
        async def check(self) -> Access | None:
            if self.groups_joined:
                raise OperationalError("the database is gone")
            return await super().check()

    member = await database_sync_to_async(ann)(await database_sync_to_async(make_team)())
    async with socket(member, consumer=Blind) as mine:
        assert await mine.closed_with() == 1011


async def test_junk_from_a_browser_is_passed_over() -> None:
    member = await database_sync_to_async(ann)(await database_sync_to_async(make_team)())
    async with socket(member, after="junk", consumer=Impatient) as mine:
        for junk in ({"watch": 7}, ["x"], {"watch": [None]}, {}, "text"):
            await mine.say(junk)
        assert (await mine.hear())["kind"] == "heartbeat"


async def test_a_frame_that_asks_what_was_asked_costs_no_look_at_access(monkeypatch: pytest.MonkeyPatch) -> None:
    member = await database_sync_to_async(ann)(await database_sync_to_async(make_team)())
    looks, access = [], consumer.check_access

    async def looking(asked: WatchedPage) -> Access | None:
        looks.append(asked.subjects)
        return await access(asked)

    monkeypatch.setattr(consumer, "check_access", looking)
    async with socket(member) as mine:
        for watched in (["run:7"], ["run:7"], ["run:7", "run:7"], ["run:8"], ["run:8"]):
            await mine.say({"watch": watched})
        await mine.hear_all()
    assert looks == [frozenset(), frozenset({"run:7"}), frozenset({"run:8"})]


@pytest.mark.parametrize("frame", ["{", '{"watch": []}'], ids=["junk", "watch"])
async def test_a_socket_that_sends_without_end_is_closed(frame: str) -> None:
    """Each frame cost a look at the sender's access, and nothing bounded how many came."""
    member = await database_sync_to_async(ann)(await database_sync_to_async(make_team)())
    async with socket(member) as mine:
        for _ in range(3 * frame_rate.AT_ONCE):
            await mine.wire.send_input({"type": "websocket.receive", "text": frame})
        assert await mine.closed_with() == 1008


async def test_a_frame_larger_than_any_page_sends_is_not_read() -> None:
    """Megabytes of JSON were parsed on the loop that all pages share, a hundred frames of them at once."""
    member = await database_sync_to_async(ann)()
    async with socket(member) as mine:
        await mine.say({"watch": ["x" * consumer.LARGEST]})
        assert await mine.closed_with() == 1009


def left_of(gone: Socket) -> tuple[object, ...]:
    """What this process still has of a page that is gone: its messages, its groups, its heartbeat."""
    layer, name = get_channel_layer(), gone.consumer.channel_name
    assert isinstance(layer, PageLayer)
    beat = gone.consumer.beat
    beats = beat is not None and not (beat.done() or beat.cancelling())
    return layer._left.get(name), [group for group, pages in layer.groups.items() if name in pages], beats


@pytest.mark.parametrize("fails", ["check_access", "look", "away"])
async def test_nothing_stays_of_a_page_that_a_failing_database_ended(
    fails: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A failure in a message or at the end left its groups and a thousand messages behind, in each outage anew."""
    team = await database_sync_to_async(make_team)()
    member, gate = await database_sync_to_async(ann)(team), await database_sync_to_async(make_gate)(team=team)

    async def down(*args: object, **named: object) -> None:
        raise OperationalError("server closed the connection unexpectedly")

    key = await database_sync_to_async(session_of)(member)
    mine = Socket(LiveConsumer, "", SessionStore(key))
    await mine.open()
    await mine.say({"watch": [f"run:{gate.run_id}"], "looking": gate.pk})
    await mine.hear_all()
    if fails == "check_access":
        monkeypatch.setattr(consumer, fails, down)
    else:
        monkeypatch.setattr(presence, fails, async_to_sync(down))
    await mine.say({"watch": [], "looking": 0 if fails == "away" else gate.pk})
    with pytest.raises(OperationalError):
        await mine.close()
    assert left_of(mine) == (None, [], False)


async def test_a_socket_that_was_ended_is_told_nothing_more_and_ended_once() -> None:
    """A fact, or a frame, between the end and the browser's going was sent after it, which the server refused."""
    team = await database_sync_to_async(make_team)()
    member = await database_sync_to_async(ann)(team)
    async with socket(member) as mine:
        since = await database_sync_to_async(commit_order.newest_cursor)()
        gate = await database_sync_to_async(make_gate)(team=team)
        await database_sync_to_async(User.objects.filter(pk=member.pk).update)(is_active=False)
        await mine.say({"watch": [f"run:{gate.run_id}"]})
        assert await mine.closed_with() == 4401
        assert left_of(mine)[1] == []
        await tell(since)
        await mine.say({"watch": [f"gate:{gate.pk}"]})
    assert mine.wire.output_queue.empty()


@pytest.mark.parametrize("frame", ["", "{", "[" * 10_000, b"\x00\xff"], ids=["empty", "cut", "deep", "binary"])
async def test_a_frame_that_is_no_json_is_passed_over(frame: str | bytes) -> None:
    """It raised: the socket was cut without a word, and each such frame wrote a traceback into the log."""
    member = await database_sync_to_async(ann)()
    async with socket(member, consumer=Impatient) as mine:
        kind = "text" if isinstance(frame, str) else "bytes"
        await mine.wire.send_input({"type": "websocket.receive", kind: frame})
        assert (await mine.hear())["kind"] == "heartbeat"


async def test_a_page_behind_a_crowd_of_others_gates_is_told_to_start_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other teams' gates used up the look-through, and the page's own fact behind them was never told."""
    monkeypatch.setattr(replay, "REPLAYED", 2)
    team = await database_sync_to_async(make_team)()
    member = await database_sync_to_async(ann)(team)
    since = await database_sync_to_async(commit_order.newest_cursor)()
    for _ in range(3):
        await database_sync_to_async(make_gate)()
    await database_sync_to_async(make_gate)(team=team)
    await database_sync_to_async(horizon.reached)()
    async with socket(member, after=since) as page:
        heard = await page.hear()
    assert heard["kind"] == "reset"
    assert commit_order.Cursor.parse(heard["cursor"]) > since


async def test_what_reads_along_stops_though_it_swallows_a_cancellation() -> None:
    """As redis-py does on Python 3.11 when one meets an answer: a web process that asked once would not end."""
    begun = asyncio.Event()

    async def deaf() -> None:
        begun.set()
        with suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
        await asyncio.Event().wait()

    task = asyncio.create_task(deaf())
    await begun.wait()
    async with asyncio.timeout(PATIENCE):
        await tailer.end_task(task)
    assert task.cancelled()
