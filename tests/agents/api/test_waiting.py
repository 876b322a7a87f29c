"""Events and requests that wait for them: the facts of the socket for the same people, polled and streamed.

Many that wait take turns and share answers.
"""

from __future__ import annotations

import asyncio
import json
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import httpx
import psycopg
import pytest
from django.contrib.auth.models import Group, User

from agents.api import events
from agents.api.protocol import waiting
from agents.api.protocol.waiting import AGAIN, AWAITS, EACH, LATER, MOST, STREAM, TOLD, TURNS, Waiting, _sender
from approvals.gates import remarks
from approvals.live.access import access_of
from approvals.live.channel_layer import PageLayer
from approvals.live.replay import missed
from approvals.models import Gate
from checkpoints import actors
from checkpoints.events import commit_order
from checkpoints.events.commit_order import Cursor
from checkpoints.models import Event
from tests.agents.api.sent_requests import ask, save
from tests.factories import MEMBER, REVIEWER, ann, bob, decide, eve, make_gate, make_policy, make_run, make_team, mira
from tests.factories.tokens import make_token
from tests.harness.horizon import reached
from tests.harness.signed_in_clients import session_of, signed_in
from tests.harness.waiting import PATIENCE


@pytest.fixture
def caller(web: str) -> Iterator[Any]:
    """caller(token) -> an HTTP client of the real web process."""
    opened: list[httpx.Client] = []

    def of(sent: str) -> httpx.Client:
        client = httpx.Client(base_url=web, headers={"Authorization": f"Bearer {sent}"}, timeout=PATIENCE)
        opened.append(client)
        return client

    yield of
    for client in opened:
        client.close()


def agents(gate: Gate) -> str:
    return make_token(ann(gate.team), team=gate.team, agent=gate.run.plan.agent)[1]


class Answered(threading.Thread):
    def __init__(self, client: httpx.Client, path: str, **query: Any) -> None:
        super().__init__(daemon=True)
        self.client, self.path, self.query = client, path, query
        self.answer: httpx.Response | None = None
        self.start()

    def run(self) -> None:
        self.answer = self.client.get(self.path, params=self.query)

    def told(self) -> Any:
        self.join(PATIENCE)
        assert self.answer is not None, "it still waits"
        assert self.answer.status_code == 200, self.answer.text
        return self.answer.json()


def test_an_outcome_comes_as_soon_as_it_is_there_and_not_before(caller: Any) -> None:
    gate = make_gate(team=make_team(may=MEMBER))
    client, path = caller(agents(gate)), f"/api/gates/{gate.pk}/outcome"
    still = client.get(path, params={"wait": 0.2})
    assert (still.status_code, still.json()["status"], still.json()["outcome"]) == (200, "open", None)
    assert "holdpoint-awaits" not in still.headers
    asked = Answered(client, path, wait=60)
    remarks.remark(gate, text="One moment.", key="k", by=bob(gate.team))  # which does not end it
    asked.join(0.5)
    assert asked.answer is None
    decide(gate, bob(gate.team))
    told = asked.told()
    assert (told["status"], told["outcome"]["kind"]) == ("decided", "approved")
    assert client.get(path, params={"wait": 60}).json()["status"] == "decided"
    other = make_gate(team=gate.team)
    reached()
    start = client.get("/api/events", params={"after": "now"}).json()["next"]
    asked = Answered(caller(agents(other)), "/api/events", after=start, subject=f"gate:{other.pk}", wait=60)
    decide(other, bob(gate.team))
    assert {each["subject"] for each in asked.told()["items"]} == {f"gate:{other.pk}"}


def test_nobody_waits_for_what_they_may_not_see_nor_for_a_time_that_is_none(caller: Any) -> None:
    gate, other = make_gate(team=make_team(may=MEMBER)), make_gate(team=make_team(may=MEMBER))
    client = caller(agents(gate))
    for path in (f"/api/gates/{other.pk}/outcome?wait=60", f"/api/events?subject=gate:{other.pk}&wait=60",
                 f"/api/events/stream?subject=run:{other.run_id}"):  # fmt: skip
        assert client.get(path).status_code == 404, path
    assert httpx.get(client.base_url.join(f"/api/gates/{gate.pk}/outcome?wait=60")).status_code == 401
    for wait in ("-1", "61", "nan", "soon"):
        answer = client.get(f"/api/gates/{gate.pk}/outcome", params={"wait": wait})
        assert (answer.status_code, answer.json()["errors"][0]["parameter"]) == (422, "wait")


@contextmanager
def heard(client: httpx.Client, last: str = "", **query: Any) -> Iterator[Callable[[str], list[dict[str, Any]]]]:
    """Open a stream; what is called with a kind returns the facts up to the first of it."""
    headers = {"Last-Event-ID": last} if last else {}
    with client.stream("GET", "/api/events/stream", params=query, headers=headers) as response:
        assert response.headers["content-type"] == "text/event-stream"
        lines = response.iter_lines()

        def until(kind: str) -> list[dict[str, Any]]:
            found: list[dict[str, Any]] = []
            for line in lines:
                if line.startswith("data: "):
                    found.append(json.loads(line.removeprefix("data: ")))
                    if found[-1]["kind"] == kind:
                        return found
            raise AssertionError(f"the stream ended without {kind}: {found}")

        yield until


def test_a_stream_tells_what_happens_and_goes_on_where_it_was_cut_off(caller: Any) -> None:
    gate = make_gate(team=make_team(may=MEMBER))
    sent, subject = agents(gate), f"run:{gate.run_id}"
    readers = make_token(ann(gate.team), "runs:read", team=gate.team)[1]
    reached()
    with heard(caller(readers), after="now") as everything:
        with heard(caller(sent), subject=subject) as until:
            before = until("gate.opened")
        assert {each["run"] for each in before} == {subject}
        decide(gate, bob(gate.team))
        with heard(caller(sent), last=before[-1]["cursor"], subject=subject) as until:
            after = until("gate.decided")
        cursors = [each["cursor"] for each in (*before, *after)]
        assert len(set(cursors)) == len(cursors)
        assert {each["subject"] for each in everything("gate.decided")} <= {f"gate:{gate.pk}", subject}


MINE = [(b"authorization", b"Bearer hp_mine")]


async def ask_door(
    door: Waiting, send: Any, path: str, query: bytes = b"", headers: Sequence[tuple[bytes, bytes]] = MINE
) -> None:
    """Send a request to a door in this process, as somebody who stays until it is answered."""
    scope = {"type": "http", "method": "GET", "path": path, "query_string": query, "headers": list(headers)}
    await door(scope, asyncio.Event().wait, send)  # type: ignore[arg-type] # it never returns


async def answer(send: Any, body: bytes, *, awaits: bool) -> None:
    """Answer as a view of the gate does that has something to wait for, or has not."""
    headers = [(AWAITS.encode(), b"gate.1")] if awaits else []
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})


@pytest.mark.parametrize(("checked", "again"), [(3600.0, TOLD), (0.0, LATER)])
async def test_a_stream_that_begins_with_what_was_is_told_at_once_what_comes(
    monkeypatch: pytest.MonkeyPatch, checked: float, again: str
) -> None:
    """Its first answer has something to tell, and so waits for nothing yet."""
    why: list[str | None] = []
    told, said, layer = ["was"], asyncio.Queue[bytes](), PageLayer()
    monkeypatch.setattr(waiting, "CHECKED", checked)
    monkeypatch.setattr(waiting, "get_channel_layer", lambda: layer)

    async def view(scope: Any, receive: Any, send: Any) -> None:
        why.append(scope.get(AGAIN))
        items = [{"cursor": "1.1", "kind": each} for each in told]
        told.clear()
        page = {"items": items, "next": "1.1", "more": False}
        await answer(send, json.dumps(page).encode(), awaits=not items)

    async def send(message: Any) -> None:
        await said.put(message.get("body", b""))

    async def says(kind: bytes) -> None:
        while b"event: " + kind not in await said.get():
            pass

    stream = asyncio.create_task(ask_door(Waiting(view), send, STREAM))
    async with asyncio.timeout(PATIENCE):
        await says(b"was")
        while "waiting.gate.1" not in layer.groups:
            await asyncio.sleep(0)
        told.append("comes")
        await layer.group_send("waiting.gate.1", {"type": "event"})
        await says(b"comes")
    stream.cancel()
    assert why[:2] == [None, again]


def test_one_sender_is_one_whatever_else_it_sends() -> None:
    def of(**sent: bytes) -> bytes:
        return _sender({"headers": [(name.encode(), value) for name, value in sent.items()]})

    assert len({of(authorization=b"Bearer hp_a"), of(authorization=b"bEARER hp_a", cookie=b"x=1")}) == 1
    assert len({of(cookie=b"sessionid=s; x=1"), of(cookie=b"y=2; sessionid=s")}) == 1
    assert len({of(authorization=b"Bearer hp_a"), of(authorization=b"Bearer hp_b"), of(cookie=b"sessionid=s")}) == 3


@pytest.mark.parametrize(("sender", "taken"), [(b"others", MOST), (_sender({"headers": MINE}), EACH)])
async def test_where_too_many_wait_polls_are_answered_at_once_and_streams_told_to_come_again(
    sender: bytes, taken: int
) -> None:
    async def never(scope: Any, receive: Any, send: Any) -> None:
        await answer(send, b"{}", awaits=True)

    said: list[Any] = []

    async def send(message: Any) -> None:
        said.append(message)

    door = Waiting(never)
    door.waiting[sender] = taken
    await ask_door(door, send, "/api/gates/1/outcome", b"wait=60")
    await ask_door(door, send, STREAM)
    assert [message["status"] for message in said[::2]] == [200, 503]
    assert "half a minute" in json.loads(said[3]["body"])["detail"]


class Crowd:
    """Polls of one gate on a layer of their own, and what their view was asked."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, senders: list[bytes]) -> None:
        self.layer, self.door, self.decided = PageLayer(), Waiting(self.view), False
        monkeypatch.setattr(waiting, "get_channel_layer", lambda: self.layer)
        self.senders, self.asked, self.inside, self.most = senders, list[tuple[bytes, Any]](), 0, 0
        self.bodies: list[bytes] = []
        self.held: asyncio.Event | None = None

    async def view(self, scope: Any, receive: Any, send: Any) -> None:
        self.asked.append((dict(scope["headers"])[b"authorization"], scope.get(AGAIN)))
        self.inside += 1
        self.most = max(self.most, self.inside)
        decided = self.decided
        if self.held is not None and scope.get(AGAIN):
            await self.held.wait()
        await asyncio.sleep(0)
        self.inside -= 1
        await answer(send, b"decided" if decided else b"open", awaits=not decided)

    async def poll(self, sender: bytes) -> None:
        async def send(message: Any) -> None:
            if message["type"] == "http.response.body":
                self.bodies.append(message["body"])

        await ask_door(self.door, send, "/api/gates/1/outcome", b"wait=60", [(b"authorization", sender)])

    async def wait(self) -> list[asyncio.Task[None]]:
        polls = [asyncio.create_task(self.poll(sender)) for sender in self.senders]
        while len(self.asked) < len(polls) or self.inside:
            await asyncio.sleep(0)
        return polls

    async def ring(self) -> None:
        await self.layer.group_send("waiting.gate.1", {"type": "event"})

    def again(self) -> list[bytes]:
        return [sender for sender, why in self.asked if why == TOLD]


async def test_an_event_that_wakes_many_asks_the_view_once_for_those_who_are_alike(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    senders = [f"Bearer hp_{number}".encode() for number in range(40)]
    crowd = Crowd(monkeypatch, [*senders, *[b"Bearer hp_a"] * 300])
    async with asyncio.timeout(PATIENCE):
        polls = await crowd.wait()
        crowd.decided = True
        await crowd.ring()
        await asyncio.gather(*polls)
    assert crowd.bodies == [b"decided"] * 340
    alike = [sender for sender in crowd.again() if sender == b"Bearer hp_a"]
    assert 1 <= len(alike) <= TURNS
    assert sorted(set(crowd.again()) - {b"Bearer hp_a"}) == sorted(senders)
    assert len(crowd.again()) == len(senders) + len(alike)
    assert crowd.most <= TURNS


async def test_nobody_is_answered_by_a_view_that_was_asked_before_its_event(monkeypatch: pytest.MonkeyPatch) -> None:
    crowd = Crowd(monkeypatch, [b"Bearer hp_a"])
    crowd.held = asyncio.Event()
    async with asyncio.timeout(PATIENCE):
        first = await crowd.wait()
        await crowd.ring()
        while not crowd.inside:
            await asyncio.sleep(0)
        asked = len(crowd.asked)
        second = asyncio.create_task(crowd.poll(b"Bearer hp_a"))
        while len(crowd.asked) == asked or crowd.inside > 1:
            await asyncio.sleep(0)
        crowd.decided = True  # the view that is being asked has read the gate before
        await crowd.ring()
        for _ in range(20):
            await asyncio.sleep(0)
        crowd.held.set()
        await asyncio.gather(*first, second)
    assert crowd.bodies == [b"decided"] * 2


def follow(user: User, after: str, **query: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    more = True
    while more:
        page = ask(user, "/api/events", after=after, **query)
        found, after, more = found + page["items"], page["next"], page["more"]
    return found


def busy() -> tuple[Group, Group, str]:
    """A team and its reviewers, and a cursor before what happened to them and to strangers."""
    before = str(commit_order.newest_cursor())
    support, finance = make_team(may=MEMBER), make_team("Finance", may=REVIEWER)
    policy = make_policy(support, groups=(finance,))
    for _ in range(2):
        make_gate()
        make_gate(policy=policy)
        save(make_run(team=support), mailed=True)
        make_run()
    return support, finance, before


def test_pages_of_facts_follow_each_other_without_a_gap_or_a_repeat_as_the_socket_tells_them() -> None:
    support, finance, before = busy()
    for reader in (ann(support), mira(finance), eve()):
        access = access_of(session_of(reader))
        assert access is not None
        (told,) = missed([(access, Cursor.parse(before))])
        assert told is not None
        assert [dict(fact) for fact in told] == follow(reader, before, limit=2) == follow(reader, before)
    assert {fact["kind"] for fact in follow(ann(support), before)} >= {"gate.opened", "run.started", "checkpoint.saved"}
    assert {fact["kind"] for fact in follow(mira(finance), before)} == {"gate.opened"}
    assert follow(eve(), before) == []


def test_what_others_do_is_passed_over_once_and_never_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    support, _, before = busy()
    newest = commit_order.newest_cursor()
    page = ask(eve(), "/api/events", after=before)
    assert (page["items"], page["more"]) == ([], False)
    assert Cursor.parse(page["next"]) >= newest > Cursor.parse(before)
    monkeypatch.setattr(events, "SCANNED", 2)  # a page that only strangers fill goes on where it ended
    assert follow(mira(make_team(may=REVIEWER)), before) == []
    assert follow(ann(support), before, limit=1) == follow(ann(support), before)
    page = ask(eve(), "/api/events", after=before)
    assert (page["items"], page["more"]) == ([], True)


def test_it_begins_with_the_first_event_or_now() -> None:
    team = make_team()
    gate, reader = make_gate(team=team), ann(team)
    opened = next(fact for fact in follow(reader, "", limit=200) if fact["kind"] == "gate.opened")
    assert (opened["subject"], opened["title"], opened["run"]) == (f"gate:{gate.pk}", gate.title, f"run:{gate.run_id}")
    start = ask(reader, "/api/events", after="now")
    assert (start["items"], start["more"]) == ([], False)
    run = make_run(team=team)
    run.cancel(by=actors.SYSTEM, reason="Not needed")
    kinds = [fact["kind"] for fact in follow(reader, start["next"])]
    assert kinds[-1] == "run.cancelled"
    assert "gate.opened" not in kinds


def test_a_place_that_the_database_has_not_come_to_is_gone() -> None:
    """A database that was set back was said to have nothing new for ever."""
    answer = signed_in(ann(make_team())).get("/api/events", {"after": str(Cursor(2**60, 1))})
    assert (answer.status_code, "after=now" in answer.json()["detail"]) == (410, True)


def test_a_place_that_no_reader_may_come_to_yet_is_not_ahead() -> None:
    reader = ann(team := make_team())
    with psycopg.connect(os.environ["DATABASE_URL"]) as other:
        other.execute("SELECT pg_current_xact_id()")
        make_gate(team=team)
        newest = Cursor.from_event(Event.objects.latest("xid", "id"))
        assert newest > commit_order.newest_cursor()
        page = ask(reader, "/api/events", after=str(newest))
        assert (page["items"], page["next"]) == ([], str(newest))
        access = access_of(session_of(reader))
        assert access is not None
        assert missed([(access, newest)]) == [[]]
