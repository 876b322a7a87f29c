"""The socket: who is told what, what is replayed, when it is closed, and that no page holds up another."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import TypeVar

import pytest
from asgiref.sync import async_to_sync
from channels.db import database_sync_to_async
from channels.layers import get_channel_layer
from django.contrib.auth.models import Group, User
from django.db import OperationalError

from approvals.live import channel_layer, consumer, replay
from approvals.live.access import Access
from approvals.live.channel_layer import PageLayer
from approvals.live.consumer import A_SECOND, AT_ONCE, FrameRate, LiveConsumer
from approvals.live.facts import Fact
from approvals.sessions import SessionStore
from checkpoints.events import commit_order, tailer
from checkpoints.models import Event, Run
from tests.agents.pages.stored_histories import ORDER, begin
from tests.factories import ann, bob, decide, eve, make_card, make_gate, make_policy, make_team, mira
from tests.harness import horizon
from tests.harness.open_sockets import Socket
from tests.harness.sent_statements import sent
from tests.harness.signed_in_clients import session_of
from tests.harness.waiting import PATIENCE, until

Made = TypeVar("Made")


class Impatient(LiveConsumer):
    heartbeat = 0.05


@asynccontextmanager
async def socket(
    user: User | None, *, after: object = "", consumer: type[LiveConsumer] = LiveConsumer
) -> AsyncIterator[Socket]:
    key = await database_sync_to_async(session_of)(user) if user else None
    opened = Socket(consumer, f"after={after}", SessionStore(key))
    await opened.open()
    yield opened
    await opened.close()


async def a_member() -> tuple[User, Group]:
    team = await database_sync_to_async(make_team)()
    return await database_sync_to_async(ann)(team), team


async def tell(since: commit_order.Cursor) -> None:
    """Hand on what happened since, as the tailer does."""
    events = await database_sync_to_async(
        lambda: list(commit_order.events_after(Event.objects.order_by("xid", "id"), since))
    )()
    await consumer.deliver(events)


async def happens(act: Callable[[], Made]) -> Made:
    """Do something, and hand on what came of it."""
    since = await database_sync_to_async(commit_order.newest_cursor)()
    made = await database_sync_to_async(act)()
    await tell(since)
    return made


async def test_a_fact_that_cannot_be_told_has_every_page_start_over() -> None:
    """All that was read with it was lost to open pages, which went on from a cursor behind it."""
    member, team = await a_member()
    async with socket(member) as mine:
        await database_sync_to_async(make_gate)(team=team)
        await database_sync_to_async(horizon.reached)()
        newest = await database_sync_to_async(commit_order.newest_cursor)()
        with pytest.raises(ValueError, match="no-number"):
            await consumer.deliver([Event(kind="test.said", subject="gate:no-number", data=b"{}")])
        assert await mine.hear() == {"kind": "reset", "cursor": str(newest)}


async def test_members_hear_of_gates_with_their_titles_by_one_query_for_all_and_an_outsider_does_not() -> None:
    team = await database_sync_to_async(make_team)()
    member, other = await database_sync_to_async(ann)(team), await database_sync_to_async(mira)(team)
    outsider = await database_sync_to_async(eve)()
    async with socket(member) as mine, socket(other) as theirs, socket(outsider) as outside:
        since = await database_sync_to_async(commit_order.newest_cursor)()
        cards = [make_card(title=f"Refund {number} to Marit Ellery") for number in range(3)]
        gates = [await database_sync_to_async(make_gate)(team=team, card=card) for card in cards]
        with sent() as statements:
            await tell(since)
        wanted = {gate.subject: gate.title for gate in gates}
        for heard in (await mine.hear_all(), await theirs.hear_all()):
            told = {fact["subject"]: fact["title"] for fact in heard if fact["kind"] == "gate.opened"}
            assert told == wanted
            assert "checkpoint.saved" not in {fact["kind"] for fact in heard}
        assert await outside.hear_all() == []
        assert len([each for each in statements if "approvals_gate" in each]) == 1


async def test_a_page_that_comes_before_the_tailer_has_begun_to_read_misses_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What happened between the page's replay and the place from which the tailer read was never told to it."""
    member, team = await a_member()
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
    assert (heard["kind"], asked) == ("gate.opened", [True])


async def test_what_happened_since_the_page_was_rendered_is_replayed() -> None:
    member, team = await a_member()
    since = await database_sync_to_async(commit_order.newest_cursor)()
    gate = await database_sync_to_async(make_gate)(team=team)
    await database_sync_to_async(horizon.reached)()
    async with socket(member, after=since) as mine:
        facts = await mine.hear_all()
    assert (gate.subject, gate.title) in {(fact["subject"], fact["title"]) for fact in facts}
    newest = facts[-1]["cursor"]
    async with socket(member, after=newest) as again:
        await tell(since)  # by a tailer that is behind
        assert await again.hear_all() == []
        later = await database_sync_to_async(make_gate)(team=team)
        await tell(since)
        assert {fact["subject"] for fact in await again.hear_all()} == {later.subject, f"run:{later.run_id}"}


async def test_a_page_that_was_drawn_before_the_database_was_set_back_starts_over() -> None:
    """It heard nothing new, and showed what had not happened any more."""
    member, _ = await a_member()
    async with socket(member, after=commit_order.Cursor(2**60, 1)) as mine:
        newest = await database_sync_to_async(commit_order.newest_cursor)()
        assert await mine.hear() == {"kind": "reset", "cursor": str(newest)}
    async with socket(member, after="7.7", consumer=Impatient) as mine:
        while (said := await mine.hear())["kind"] != "heartbeat":
            pass
        assert commit_order.Cursor.parse(said["cursor"]) >= (7, 7)


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
    member, team = await a_member()
    gate = await database_sync_to_async(make_gate)(policy=await database_sync_to_async(make_policy)(team, quorum=2))
    async with socket(member) as mine:
        await mine.say({"watch": [f"gate:{gate.pk}", f"run:{gate.run_id}"]})
        await mine.hear_all()
        await happens(lambda: decide(gate, member))
        cursors = [fact["cursor"] for fact in await mine.hear_all()]
        assert 0 < len(cursors) == len(set(cursors))


async def test_nobody_listens_without_signing_in_or_once_their_account_is_switched_off() -> None:
    async with socket(None) as theirs:
        assert await theirs.closed_with() == 4401
    member, _ = await a_member()
    async with socket(member, consumer=Impatient) as mine:
        await database_sync_to_async(User.objects.filter(pk=member.pk).update)(is_active=False)
        assert await mine.closed_with() == 4401


async def test_somebody_taken_out_of_a_team_hears_of_it_no_more() -> None:
    member, team = await a_member()
    async with socket(member, consumer=Impatient) as mine:
        await database_sync_to_async(member.groups.clear)()
        await mine.hear_all()  # among it are heartbeats from before
        for _ in range(2):
            assert (await mine.hear())["kind"] == "heartbeat"
        await happens(lambda: make_gate(team=team))
        for _ in range(3):
            assert (await mine.hear())["kind"] == "heartbeat"


async def test_a_socket_whose_access_cannot_be_checked_is_closed() -> None:
    """The heartbeat ended with the database's error, and the socket stayed open for whoever had lost their access."""

    class Blind(Impatient):
        async def check(self) -> Access | None:
            if self.groups_joined:
                raise OperationalError("the database is gone")
            return await super().check()

    member, _ = await a_member()
    async with socket(member, consumer=Blind) as mine:
        assert await mine.closed_with() == 1011


async def test_junk_from_a_browser_is_passed_over() -> None:
    """What is no JSON raised: the socket was cut without a word, and each wrote a traceback into the log."""
    member, _ = await a_member()
    async with socket(member, after="junk") as mine:
        for junk in ({"watch": 7}, ["x"], {"watch": [None]}, {}, "text"):
            await mine.say(junk)
        for frame in ("", "{", "[" * 10_000):
            await mine.wire.send_input({"type": "websocket.receive", "text": frame})
        await mine.wire.send_input({"type": "websocket.receive", "bytes": b"\x00\xff"})
        await mine.say({"ping": True})  # which is answered once all of that was read
        assert (await mine.hear())["kind"] == "heartbeat"


async def test_a_socket_that_sends_without_end_or_more_than_any_page_is_closed() -> None:
    """Each frame cost a look at the sender's access, and megabytes of JSON were parsed on the loop of all pages."""
    member, _ = await a_member()
    async with socket(member) as mine:
        for _ in range(3 * consumer.AT_ONCE):
            await mine.wire.send_input({"type": "websocket.receive", "text": "{"})
        assert await mine.closed_with() == 1008
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


@pytest.mark.parametrize("fails", ["check_access", "away"])
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
        monkeypatch.setattr(channel_layer, fails, async_to_sync(down))
    await mine.say({"watch": [], "looking": 0 if fails == "away" else gate.pk})
    with pytest.raises(OperationalError):
        await mine.close()
    assert left_of(mine) == (None, [], False)


async def test_a_socket_that_was_ended_is_told_nothing_more_and_ended_once() -> None:
    """A fact, or a frame, between the end and the browser's going was sent after it, which the server refused."""
    member, team = await a_member()
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


def newest_of(run: Run) -> Event:
    """The event of the run's newest checkpoint, once no transaction is open that began before it."""
    event = Event.objects.filter(run_id=run.pk, kind="checkpoint.saved").latest("id")
    until(lambda: commit_order.settled_events().filter(pk=event.pk).exists())
    return event


async def test_a_checkpoint_saved_before_the_page_said_what_it_watches_is_told_then() -> None:
    team = await database_sync_to_async(make_team)()
    member = await database_sync_to_async(bob)(team)
    walk = await database_sync_to_async(begin)(team)
    since = await database_sync_to_async(commit_order.newest_cursor)()
    page = Socket(LiveConsumer, f"after={since}", SessionStore(await database_sync_to_async(session_of)(member)))
    await page.open()
    await page.hear_all()
    await database_sync_to_async(walk.save)("find_order", {"order": ORDER}, "propose")
    saved = await database_sync_to_async(newest_of)(walk.run)
    await consumer.deliver([saved])
    # On a slow machine the opening's own replay may come this late, and tells it: once is what counts.
    told = await page.hear_all()
    await page.say({"watch": [f"run:{walk.run.pk}"]})
    if not told:
        told = [await page.hear()]
    told += await page.hear_all()
    await page.say({"watch": [f"run:{walk.run.pk}"]})
    again = await page.hear_all()
    await page.close()
    assert [fact["run"] for fact in told if fact["kind"] == "checkpoint.saved"] == [f"run:{walk.run.pk}"]
    assert again == []


async def test_a_page_that_comes_to_watch_a_running_step_is_told_to_look_at_once() -> None:
    """What was said between the drawing of the page and its watching was told to nobody, and stayed unseen for long."""
    team = await database_sync_to_async(make_team)()
    member, outsider = await database_sync_to_async(bob)(team), await database_sync_to_async(eve)()
    run = await database_sync_to_async(lambda: begin(team).run)()
    watch = {"watch": [f"run:{run.pk}", f"spoken:{run.pk}", "spoken:x", "spoken:0"]}
    async with socket(member) as mine, socket(outsider) as theirs:
        await mine.say(watch)
        await theirs.say(watch)
        told = {"kind": "run.spoke", "subject": f"spoken:{run.pk}"}
        assert await mine.hear() == told
        await mine.say(watch)
        assert await mine.hear_all() == []
        await channel_layer.hand_on(
            {
                "type": "message",
                "channel": channel_layer.channel(channel_layer.SPOKEN).encode(),
                "data": str(run.pk).encode(),
            }
        )
        assert await mine.hear() == told
        assert await theirs.hear_all() == []


async def test_whoever_falls_behind_gets_one_word_for_all_that_was_dropped_and_then_goes_on() -> None:
    layer = PageLayer(capacity=3)
    slow, quick = await layer.new_channel(), await layer.new_channel()
    for each in (slow, quick):
        await layer.group_add("team.1", each)
    for n in range(4):
        await layer.group_send("team.1", {"type": "facts", "n": n})
        assert (await layer.receive(quick))["n"] == n
    await layer.group_send("team.1", {"type": "facts", "n": 4})
    assert await layer.receive(slow) == {"type": "overrun"}
    assert (await layer.receive(slow))["n"] == 4


async def test_a_page_that_fell_behind_is_told_to_start_over_from_what_is_newest() -> None:
    """What did not fit was dropped without a word, and the page showed what was no longer so."""
    member, team = await a_member()

    async with socket(member, consumer=Impatient) as page:
        assert (await page.hear())["kind"] == "heartbeat"
        since = await database_sync_to_async(commit_order.newest_cursor)()
        await database_sync_to_async(make_gate)(team=team)
        await database_sync_to_async(horizon.reached)()
        await page.consumer.channel_layer.send(page.consumer.channel_name, {"type": "overrun"})
        async with asyncio.timeout(30):
            while (said := await page.hear())["kind"] == "heartbeat":
                pass
    assert said["kind"] == "reset"
    assert commit_order.Cursor.parse(said["cursor"]) > since


def test_a_burst_is_taken_and_what_comes_after_it_only_as_time_goes_by() -> None:
    pace = FrameRate(since=0.0)
    assert [pace.allows(now=0.0) for _ in range(AT_ONCE + 2)] == [True] * AT_ONCE + [False, False]
    assert [pace.allows(now=each / A_SECOND) for each in (0.5, 1.0, 1.5)] == [False, True, False]
    pace.allows(now=1e6)
    assert pace.left == AT_ONCE - 1, "never over its brim"
