"""What goes wrong on the way: an answer that is lost does nothing twice, and what may pass is waited for."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import httpx
import pytest
from holdpoint import BadToken, Holdpoint, Invalid, NotFound, TooMany, Unreachable

from agents.models import Effect
from approvals.models import Gate
from checkpoints.models import Checkpoint
from tests.clients.losing_proxy import Fate, Proxy, first
from tests.clients.test_approving import wires
from tests.clients.world import World, ended
from tests.harness.examples import first_alone
from tests.harness.services import free_port
from tests.harness.waiting import PATIENCE, until

Start = Callable[..., Proxy]


@pytest.fixture
def proxy(web: str) -> Iterator[Start]:
    """Return proxy(fate, port=0) -> Proxy, on the way to the web server."""
    made: list[Proxy] = []

    def start(fate: Fate, port: int = 0) -> Proxy:
        made.append(Proxy(web, fate, port))
        return made[-1]

    yield start
    for each in made:
        each.close()


@pytest.mark.parametrize("what", first_alone(["/gates", "/effects", "/claims", "/results"], 2))
def test_an_answer_that_is_lost_does_nothing_twice(proxy: Start, what: str) -> None:
    way = proxy(first(what, "lose"))
    world = World(way.url)
    told = world.runs(wires)
    world.decides()
    got = told.result(PATIENCE)
    assert ended(got["run"])["wire_result"] == {"id": "tx_1"}
    once, again = way.posts(what)[:2]
    assert once == again
    assert once.key
    assert Gate.objects.filter(team=world.team).count() == 1
    row = Effect.objects.get(run=got["run"])
    assert (row.status, row.attempts, row.key) == ("done", 1, got["key"])
    assert Checkpoint.objects.filter(run=got["run"]).count() == 3


def test_a_report_whose_answer_never_comes_is_followed_by_no_other(proxy: Start) -> None:
    """The server has it: another report under another key would be of a result that is known."""
    way = proxy(lambda sent: "lose" if sent.path.endswith("/results") else "")
    world = World(way.url)
    told = world.runs(wires, patience=0.5)
    gate = world.decides()
    assert isinstance(told.exception(PATIENCE), Unreachable)
    assert len({each.key for each in way.posts("/results")}) == 1
    assert Effect.objects.get(run=gate.run_id).status == "done"


@pytest.mark.parametrize(("status", "after"), first_alone([(429, "0"), (503, "0"), (500, ""), (502, "junk")]))
def test_what_may_pass_is_tried_again_under_the_same_key(proxy: Start, status: int, after: str) -> None:
    way = proxy(first("/gates", (status, after), times=2))
    world = World(way.url)
    told = world.runs(wires)
    world.decides()
    told.result(PATIENCE)
    assert len(way.posts("/gates")) == 3
    assert len({each.key for each in way.posts("/gates")}) == 1


def test_a_server_that_is_down_for_a_while_is_waited_for(proxy: Start) -> None:
    tries: list[str] = []

    class Counting(httpx.HTTPTransport):
        def handle_request(self, request: httpx.Request) -> httpx.Response:
            tries.append(request.url.path)
            return super().handle_request(request)

    port = free_port()
    world = World(f"http://127.0.0.1:{port}")
    told = world.runs(wires, transport=Counting())
    until(lambda: len(tries) > 1, what="it is refused and tries again")
    assert set(tries) == {"/api/gates"}
    proxy(lambda sent: "", port)
    world.decides()
    assert told.result(PATIENCE)["arguments"]["amount"] == "120.00"


def test_what_lasts_too_long_is_said_plainly_and_without_the_token() -> None:
    world = World(f"http://127.0.0.1:{free_port()}")
    with world.client(patience=0.3) as hp, pytest.raises(Unreachable, match=r"No answer within 0\.3 s") as lost:
        hp.gate(1)
    assert world.token not in repr(lost.value) + str(lost.value.__cause__) + repr(hp) + repr(hp._io.client.headers)
    assert lost.value.__cause__ is None


def test_a_server_that_asks_to_wait_for_longer_than_there_is_patience_is_told_at_once(proxy: Start) -> None:
    way = proxy(first("/gates", (429, "3600")))
    with World(way.url).client() as hp, pytest.raises(TooMany, match="Later"):
        hp.approve.defer("wire")
    assert len(way.seen) == 1


def test_what_people_rejected_is_not_asked_again_by_the_client_itself(proxy: Start) -> None:
    """Where the pause was shorter than the client's patience, people were asked a third time by nobody's will."""
    way = proxy(first("/gates", (429, "0", "rejected_before")))
    with World(way.url).client() as hp, pytest.raises(TooMany, match="Later") as refused:
        hp.approve.defer("wire")
    assert (refused.value.code, len(way.seen)) == ("rejected_before", 1)


def test_a_refusal_is_final(proxy: Start) -> None:
    way = proxy(lambda sent: "")
    world = World(way.url)
    with Holdpoint(way.url, "hp_none") as hp, pytest.raises(BadToken, match="not valid") as bad:
        hp.approve.defer("wire")
    assert (bad.value.status, bad.value.code) == (401, "")
    assert "hp_none" not in str(bad.value) + repr(bad.value)
    with world.client() as hp, pytest.raises(NotFound, match="No such gate"):
        hp.gate(2**40)
    with world.client() as hp, pytest.raises(Invalid) as invalid:
        hp.approve.defer("no name")
    assert [each["parameter"] for each in invalid.value.errors] == ["/actions/0/id", "/actions/0/tool"]
    assert "/actions/0/id: 'no name' is not an identifier" in str(invalid.value)
    assert len(way.seen) == 3


def test_the_token_is_in_no_log(world: World, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG")
    told = world.runs(wires)
    world.decides()
    told.result(PATIENCE)
    logged = caplog.text
    assert "httpcore" in logged
    assert "asks: Pay invoice 7" in logged
    assert world.token not in logged
