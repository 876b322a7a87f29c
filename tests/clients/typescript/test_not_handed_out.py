"""An approval that the server does not hand out allows nothing, and whoever runs the program reads why."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from approvals.models import Gate
from checkpoints.models import Event
from tests.clients.losing_proxy import Fate, Proxy
from tests.clients.mcp.test_not_handed_out import NO_SCOPE, OLDER, OTHERS, hiding, lacking
from tests.clients.typescript.program import Program, Thrown
from tests.clients.world import World
from tests.factories.tokens import make_token

ASKS = 'return hp.ask("wire", WIRE);'


@pytest.fixture
def behind(web: str) -> Iterator[Callable[[Fate], World]]:
    """Return behind(fate) -> World, whose program reaches the server through a proxy."""
    made: list[Proxy] = []

    def start(fate: Fate) -> World:
        made.append(Proxy(web, fate))
        return World(made[-1].url)

    yield start
    for each in made:
        each.close()


def is_kept_back(told: Thrown, gate: Gate, words: str) -> None:
    assert (told.kind, told.said["message"]) == ("NotHandedOut", words.format(gate=gate.pk))
    assert told.said["gate"] == gate.pk
    assert not Event.objects.filter(kind="gate.handed_out", subject=gate.subject).exists()


@pytest.mark.parametrize(("fate", "words"), [(lacking, OLDER), (hiding, OTHERS)])
def test_a_server_that_is_older_and_a_gate_that_is_hidden_are_told_apart(
    behind: Callable[[Fate], World], program: Program, fate: Fate, words: str
) -> None:
    world = behind(fate)
    asked = program(world, ASKS)
    gate = world.decides()
    with pytest.raises(Thrown) as told:
        asked.result()
    is_kept_back(told.value, gate, words)


def test_a_token_that_may_not_work_on_runs_is_named_with_the_scope_that_it_lacks(web: str, program: Program) -> None:
    world = World(web)
    _, world.token = make_token(
        world.owner, "runs:start", "runs:read", "gates:read", team=world.team, agent=world.agent
    )
    asked = program(world, ASKS)
    gate = world.decides()
    with pytest.raises(Thrown) as told:
        asked.result()
    is_kept_back(told.value, gate, NO_SCOPE)


def test_what_a_run_performs_is_not_told_as_an_answer_beside_it(web: str, program: Program) -> None:
    """`said` of a gate that was posted by `approve` returned its approval each time, and `resume` performed it too."""
    world = World(web)
    pending = program(world, 'return hp.defer("wire", WIRE);').result()
    gate = world.decides()
    with pytest.raises(Thrown, match=r"NotHandedOut: .* done by its run"):
        program(world, f"return hp.said({gate.pk});").result()
    assert program(world, f'return hp.resume({pending["id"]}, {{}}, () => "tx_1");').result() == "tx_1"
