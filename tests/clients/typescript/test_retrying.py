"""What goes wrong on the way: an answer that is lost does nothing twice, and what may pass is waited for.

An approval that the server does not hand out allows nothing, and whoever runs the program reads why.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from agents.models import Effect
from approvals.models import Gate
from checkpoints.models import Event
from tests.clients.losing_proxy import Fate, Proxy, first
from tests.clients.mcp.test_not_handed_out import NO_SCOPE, OLDER, OTHERS, hiding, lacking
from tests.clients.typescript.program import Program, Thrown
from tests.clients.typescript.test_approving import wires
from tests.clients.world import World, ended
from tests.factories.tokens import make_token
from tests.harness.examples import first_alone
from tests.harness.services import free_port

Start = Callable[..., Proxy]
ASKS_ONLY = 'return hp.ask("wire", WIRE);'
DEFERS = 'return hp.defer("wire", WIRE);'


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


@pytest.mark.parametrize("what", first_alone(["/effects", "/gates", "/claims", "/results"]))
def test_an_answer_that_is_lost_does_nothing_twice(proxy: Start, program: Program, what: str) -> None:
    way = proxy(first(what, "lose"))
    world = World(way.url)
    told = wires(program, world)
    gate = world.decides()
    told.result()
    assert ended(gate.run_id)["wire_result"] == {"id": "tx_1"}
    once, again = way.posts(what)[:2]
    assert once == again
    assert once.key
    assert Gate.objects.filter(team=world.team).count() == 1
    row = Effect.objects.get(run=gate.run_id)
    assert (row.status, row.attempts, row.key) == ("done", 1, told.wrote("call")["key"])


def test_a_report_whose_answer_never_comes_is_followed_by_no_other(proxy: Start, program: Program) -> None:
    """The server has it: another report under another key would be of a result that is known."""
    way = proxy(lambda sent: "lose" if sent.path.endswith("/results") else "")
    world = World(way.url)
    told = wires(program, world, patience=0.5)
    gate = world.decides()
    with pytest.raises(Thrown, match="Unreachable"):
        told.result()
    assert len({each.key for each in way.posts("/results")}) == 1
    assert Effect.objects.get(run=gate.run_id).status == "done"


def test_a_date_to_wait_for_is_read_by_the_servers_clock(proxy: Start, program: Program) -> None:
    """That of the client may be wrong by hours: it waited for as long, or not at all."""
    way = proxy(first("/gates", (429, "Thu, 01 Jan 1970 00:00:00 GMT"), times=1))
    program(World(way.url), "Date.now = () => -864e5; " + DEFERS).result()
    assert len(way.posts("/gates")) == 2


@pytest.mark.parametrize(("status", "after"), first_alone([(429, "0"), (503, "0"), (500, ""), (502, "junk")]))
def test_what_may_pass_is_tried_again_under_the_same_key(
    proxy: Start, program: Program, status: int, after: str
) -> None:
    way = proxy(first("/gates", (status, after), times=2))
    program(World(way.url), DEFERS).result()
    assert len(way.posts("/gates")) == 3
    assert len({each.key for each in way.posts("/gates")}) == 1


@pytest.mark.long
def test_a_server_that_is_down_for_a_while_is_waited_for(proxy: Start, program: Program) -> None:
    port = free_port()
    told = program(World(f"http://127.0.0.1:{port}"), DEFERS)
    told.service.says(r"no usable answer: ECONNREFUSED\. It is tried again for 60 s")
    proxy(lambda sent: "", port)
    assert told.result()["id"]


def test_what_lasts_too_long_is_said_plainly_and_without_the_token(program: Program) -> None:
    world = World(f"http://127.0.0.1:{free_port()}")
    told = program(world, f"console.log(hp); {DEFERS}", patience=0.3)
    with pytest.raises(Thrown, match=r"Unreachable: No answer within 0\.3 s: ECONNREFUSED"):
        told.result()
    assert world.token not in told.service.log


def test_a_server_that_asks_to_wait_for_longer_than_there_is_patience_is_told_at_once(
    proxy: Start, program: Program
) -> None:
    way = proxy(first("/gates", (429, "3600")))
    with pytest.raises(Thrown, match=r"Problem: Later\. \(429\)"):
        program(World(way.url), DEFERS).result()
    assert len(way.seen) == 1


def test_what_people_rejected_is_not_asked_again_by_the_client_itself(proxy: Start, program: Program) -> None:
    way = proxy(first("/gates", (429, "0", "rejected_before")))
    with pytest.raises(Thrown, match=r"Problem: Later\. \(429"):
        program(World(way.url), DEFERS).result()
    assert len(way.seen) == 1


def test_a_refusal_is_final(proxy: Start, program: Program) -> None:
    way = proxy(lambda sent: "")
    world = World(way.url)
    with pytest.raises(Thrown, match="not valid") as bad:
        program(world, 'return new Holdpoint({ token: "hp_none" }).defer("wire", WIRE);').result()
    assert bad.value.said["status"] == 401
    with pytest.raises(Thrown, match="No such gate"):
        program(world, 'return hp.api.get("/api/gates/{gate_id}", { path: { gate_id: 2 ** 40 } });').result()
    with pytest.raises(Thrown, match=r"/actions/0/id: 'no name' is not an identifier") as invalid:
        program(world, 'return hp.defer("no name", {});').result()
    assert [each["parameter"] for each in invalid.value.said["errors"]] == ["/actions/0/id", "/actions/0/tool"]
    assert len(way.seen) == 3


def test_settings_and_keys_that_cannot_be_right_are_refused_and_not_sent(world: World, program: Program) -> None:
    """A key with a space was sent, and refused by the server."""
    told = program(
        world,
        """
        const said = (error) => `${error.name}: ${error.message}`;
        const made = (settings) => { try { new Holdpoint(settings); } catch (error) { return said(error); } };
        const keys = ["two words", "Ä", "x".repeat(201)];
        const sent = await Promise.all(keys.map((key) => hp.defer("wire", WIRE, { key }).catch(said)));
        return [made({ url: "holdpoint.example.com" }), made({ token: "hp_a\\nX-More: 1" }), ...sent];
        """,
    ).result()
    expected = ["NotConfigured: Give the server's address", "NotConfigured: Give a token"]
    expected += ["TypeError: A key has 1 to 200 printable ASCII characters, and no space"] * 3
    assert [text.startswith(words) for text, words in zip(told, expected, strict=True)] == [True] * 5, told


def test_what_does_not_answer_as_holdpoint_does_is_named(proxy: Start, program: Program) -> None:
    way = proxy(first("/gates", (302, "0")))
    with pytest.raises(Thrown, match=r"BadAnswer: The answer \(302\) is not from Holdpoint\. Check the address"):
        program(World(way.url), DEFERS).result()


def is_kept_back(told: Thrown, gate: Gate, words: str) -> None:
    assert (told.kind, told.said["message"]) == ("NotHandedOut", words.format(gate=gate.pk))
    assert told.said["gate"] == gate.pk
    assert not Event.objects.filter(kind="gate.handed_out", subject=gate.subject).exists()


@pytest.mark.parametrize(("fate", "words"), [(lacking, OLDER), (hiding, OTHERS)])
def test_a_server_that_is_older_and_a_gate_that_is_hidden_are_told_apart(
    proxy: Start, program: Program, fate: Fate, words: str
) -> None:
    world = World(proxy(fate).url)
    asked = program(world, ASKS_ONLY)
    gate = world.decides()
    with pytest.raises(Thrown) as told:
        asked.result()
    is_kept_back(told.value, gate, words)


def test_a_token_that_may_not_work_on_runs_is_named_with_the_scope_that_it_lacks(
    world: World, program: Program
) -> None:
    _, world.token = make_token(
        world.owner, "runs:start", "runs:read", "gates:read", team=world.team, agent=world.agent
    )
    asked = program(world, ASKS_ONLY)
    gate = world.decides()
    with pytest.raises(Thrown) as told:
        asked.result()
    is_kept_back(told.value, gate, NO_SCOPE)


def test_what_a_run_performs_is_not_told_as_an_answer_beside_it(world: World, program: Program) -> None:
    """`said` of a gate that was posted by `approve` returned its approval each time, and `resume` performed it too."""
    pending = program(world, 'return hp.defer("wire", WIRE);').result()
    gate = world.decides()
    with pytest.raises(Thrown, match=r"NotHandedOut: .* done by its run"):
        program(world, f"return hp.said({gate.pk});").result()
    assert program(world, f'return hp.resume({pending["id"]}, {{}}, () => "tx_1");').result() == "tx_1"
