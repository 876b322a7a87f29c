"""Requests that wait, and the stream of events, on a real web process."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from agents.api.protocol import event_channel, waiting
from agents.api.protocol.waiting import AGAIN, AWAITS, EACH, LATER, MOST, STREAM, TOLD, Waiting, _sender
from approvals.live.channel_layer import PageLayer
from approvals.models import Gate
from tests.factories import MEMBER, ann, bob, decide, make_gate, make_team
from tests.factories.tokens import make_token
from tests.harness.horizon import reached
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
    """A token of the agent that asks."""
    return make_token(ann(gate.team), team=gate.team, agent=gate.run.plan.agent)[1]


class Answered(threading.Thread):
    """A request under way in the background."""

    def __init__(self, client: httpx.Client, path: str, **query: Any) -> None:
        super().__init__(daemon=True)
        self.client, self.path, self.query = client, path, query
        self.answer: httpx.Response | None = None
        self.start()

    def run(self) -> None:
        self.answer = self.client.get(self.path, params=self.query)

    def told(self) -> Any:
        """What it answered."""
        self.join(PATIENCE)
        assert self.answer is not None, "it still waits"
        assert self.answer.status_code == 200, self.answer.text
        return self.answer.json()


def test_an_outcome_comes_as_soon_as_it_is_there(caller: Any) -> None:
    gate = make_gate(team=make_team(may=MEMBER))
    waiting = Answered(caller(agents(gate)), f"/api/gates/{gate.pk}/outcome", wait=60)
    waiting.join(0.5)
    assert waiting.answer is None
    decide(gate, bob(gate.team))
    told = waiting.told()
    assert (told["status"], told["outcome"]["kind"]) == ("decided", "approved")


def test_a_gate_that_still_asks_says_so_when_the_time_is_over_and_one_that_ended_at_once(caller: Any) -> None:
    gate = make_gate(team=make_team(may=MEMBER))
    client = caller(agents(gate))
    still = client.get(f"/api/gates/{gate.pk}/outcome", params={"wait": 0.2})
    assert (still.status_code, still.json()["status"], still.json()["outcome"]) == (200, "open", None)
    assert "holdpoint-awaits" not in still.headers
    decide(gate, bob(gate.team))
    assert client.get(f"/api/gates/{gate.pk}/outcome", params={"wait": 60}).json()["status"] == "decided"


def test_what_changes_at_the_gate_without_ending_it_does_not_end_the_wait(caller: Any) -> None:
    from approvals.gates import remarks

    gate = make_gate(team=make_team(may=MEMBER))
    waiting = Answered(caller(agents(gate)), f"/api/gates/{gate.pk}/outcome", wait=60)
    remarks.remark(gate, text="One moment.", key="k", by=bob(gate.team))
    waiting.join(1)
    assert waiting.answer is None
    decide(gate, bob(gate.team))
    assert waiting.told()["status"] == "decided"


@pytest.mark.parametrize("wait", ["-1", "61", "nan", "soon"])
def test_a_wait_that_is_none_is_refused_at_once(caller: Any, wait: str) -> None:
    gate = make_gate(team=make_team(may=MEMBER))
    answer = caller(agents(gate)).get(f"/api/gates/{gate.pk}/outcome", params={"wait": wait})
    assert (answer.status_code, answer.json()["errors"][0]["parameter"]) == (422, "wait")


def test_nobody_waits_for_what_they_may_not_see(caller: Any) -> None:
    gate, other = make_gate(team=make_team(may=MEMBER)), make_gate(team=make_team(may=MEMBER))
    client = caller(agents(gate))
    for path in (f"/api/gates/{other.pk}/outcome?wait=60", f"/api/events?subject=gate:{other.pk}&wait=60",
                 f"/api/events/stream?subject=run:{other.run_id}"):  # fmt: skip
        assert client.get(path).status_code == 404, path
    assert httpx.get(client.base_url.join(f"/api/gates/{gate.pk}/outcome?wait=60")).status_code == 401


def test_events_are_waited_for(caller: Any) -> None:
    gate = make_gate(team=make_team(may=MEMBER))
    client = caller(agents(gate))
    reached()
    start = client.get("/api/events", params={"after": "now"}).json()["next"]
    waiting = Answered(client, "/api/events", after=start, subject=f"gate:{gate.pk}", wait=60)
    decide(gate, bob(gate.team))
    told = waiting.told()
    assert [each["subject"] for each in told["items"]] == [f"gate:{gate.pk}"] * len(told["items"])
    assert told["items"]


class Heard:
    """A stream that is read until something is said."""

    def __init__(self, client: httpx.Client, path: str, last: str = "", **query: Any) -> None:
        headers = {"Last-Event-ID": last} if last else {}
        self.context = client.stream("GET", path, params=query, headers=headers)
        self.response = self.context.__enter__()
        self.lines = self.response.iter_lines()
        self.last = ""

    def until(self, kind: str) -> list[dict[str, Any]]:
        """The facts up to the first of this kind."""
        found: list[dict[str, Any]] = []
        for line in self.lines:
            name, _, value = line.partition(": ")
            if name == "id":
                self.last = value
            if name == "data":
                found.append(json.loads(value))
                if found[-1]["kind"] == kind:
                    return found
        raise AssertionError(f"the stream ended without {kind}: {found}")

    def close(self) -> None:
        """Go away."""
        self.context.__exit__(None, None, None)


def test_a_stream_tells_what_happens_and_goes_on_where_it_was_cut_off(caller: Any) -> None:
    gate = make_gate(team=make_team(may=MEMBER))
    sent = agents(gate)
    reached()
    stream = Heard(caller(sent), "/api/events/stream", subject=f"run:{gate.run_id}")
    assert stream.response.headers["content-type"] == "text/event-stream"
    before = stream.until("gate.opened")
    assert {each["run"] for each in before} == {f"run:{gate.run_id}"}
    stream.close()
    decide(gate, bob(gate.team))
    again = Heard(caller(sent), "/api/events/stream", last=stream.last, subject=f"run:{gate.run_id}")
    after = again.until("gate.decided")
    again.close()
    cursors = [each["cursor"] for each in (*before, *after)]
    assert len(set(cursors)) == len(cursors)


def test_a_stream_of_everything_tells_what_is_new_as_it_comes(caller: Any) -> None:
    team = make_team(may=MEMBER)
    gate = make_gate(team=team)
    sent = make_token(ann(team), "runs:read", team=team)[1]
    reached()
    stream = Heard(caller(sent), "/api/events/stream", after="now")
    decide(gate, bob(team))
    told = stream.until("gate.decided")
    stream.close()
    assert all(each["subject"] in (f"gate:{gate.pk}", f"run:{gate.run_id}") for each in told)


@pytest.mark.parametrize(("checked", "again"), [(3600.0, TOLD), (0.0, LATER)])
def test_a_stream_that_begins_with_what_was_is_told_at_once_what_comes(
    monkeypatch: pytest.MonkeyPatch, checked: float, again: str
) -> None:
    """Its first answer has something to tell, and so waits for nothing yet."""
    monkeypatch.setattr(waiting, "CHECKED", checked)
    why: list[str | None] = []
    told, said, layer = ["was"], asyncio.Queue[bytes](), PageLayer()
    monkeypatch.setattr(event_channel, "get_channel_layer", lambda: layer)

    async def view(scope: Any, receive: Any, send: Any) -> None:
        why.append(scope.get(AGAIN))
        items = [{"cursor": "1.1", "kind": each} for each in told]
        told.clear()
        awaits = [] if items else [(AWAITS.encode(), b"gate.1")]
        await send({"type": "http.response.start", "status": 200, "headers": awaits})
        page = {"items": items, "next": "1.1", "more": False}
        await send({"type": "http.response.body", "body": json.dumps(page).encode()})

    async def send(message: Any) -> None:
        await said.put(message.get("body", b""))

    async def stays() -> Any:
        await asyncio.Event().wait()

    async def says(kind: bytes) -> None:
        while b"event: " + kind not in await said.get():
            pass

    async def happens() -> None:
        scope = {"type": "http", "method": "GET", "path": STREAM, "query_string": b"", "headers": []}
        stream = asyncio.create_task(Waiting(view)(scope, stays, send))
        async with asyncio.timeout(PATIENCE):
            await says(b"was")
            while "waiting.gate.1" not in layer.groups:
                await asyncio.sleep(0)
            told.append("comes")
            await layer.group_send("waiting.gate.1", {"type": "event"})
            await says(b"comes")
        stream.cancel()

    asyncio.run(happens())
    assert why[:2] == [None, again]


def test_what_is_only_said_inside_stays_there(caller: Any) -> None:
    gate = make_gate(team=make_team(may=MEMBER))
    answer = caller(agents(gate)).get(f"/api/gates/{gate.pk}/outcome")
    assert (answer.status_code, "holdpoint-awaits" in answer.headers) == (200, False)


def test_one_sender_is_one_whatever_else_it_sends() -> None:
    def of(**sent: bytes) -> bytes:
        return _sender({"headers": [(name.encode(), value) for name, value in sent.items()]})

    assert len({of(authorization=b"Bearer hp_a"), of(authorization=b"bEARER hp_a", cookie=b"x=1")}) == 1
    assert len({of(cookie=b"sessionid=s; x=1"), of(cookie=b"y=2; sessionid=s")}) == 1
    assert len({of(authorization=b"Bearer hp_a"), of(authorization=b"Bearer hp_b"), of(cookie=b"sessionid=s")}) == 3


MINE = [(b"authorization", b"Bearer hp_mine")]


@pytest.mark.parametrize(("sender", "taken"), [(b"others", MOST), (_sender({"headers": MINE}), EACH)])
def test_where_too_many_wait_polls_are_answered_at_once_and_streams_told_to_come_again(
    sender: bytes, taken: int
) -> None:
    async def never(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [(AWAITS.encode(), b"gate.1")]})
        await send({"type": "http.response.body", "body": b"{}"})

    said: list[Any] = []

    async def stays() -> Any:
        await asyncio.Event().wait()

    async def ask(path: str, query: bytes) -> list[Any]:
        async def send(message: Any) -> None:
            said.append(message)

        door = Waiting(never)
        door.waiting[sender] = taken
        scope = {"type": "http", "method": "GET", "path": path, "query_string": query, "headers": MINE}
        await door(scope, stays, send)
        return said

    asyncio.run(ask("/api/gates/1/outcome", b"wait=60"))
    assert said.pop(0)["status"] == 200
    said.clear()
    asyncio.run(ask("/api/events/stream", b""))
    assert said[0]["status"] == 503
    assert "half a minute" in json.loads(said[1]["body"])["detail"]
