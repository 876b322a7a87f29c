"""What is observed may be secret: it is compared, and neither kept nor shown."""

from __future__ import annotations

from approvals.models import Gate, Proposal
from checkpoints.models import Event, Run
from tests.factories import make_team, make_user
from tests.factories.driven_runs import advance, decide, make_run, open_gate, state
from tests.harness.signed_in_clients import signed_in

from .watched_world import World, world_rows

TOKEN, CODE, OTHER = "token-5d0f1e77", "code-81c2aa90", "code-f37e6b12"
MAY = ("checkpoints.view_run", "approvals.decide_gate", "checkpoints.view_audit")


def waiting(world: World) -> Run:
    """A run at its gate, which has seen the code."""
    world.turns(CODE)
    run = advance(make_run("keyholder", team=make_team(may=MAY), world=str(world.folder), token=TOKEN))
    assert run.status == "waiting"
    return run


def told(run: Run) -> list[str]:
    """Where a secret stands: in what is kept of the gates, in events and notes, or at an address."""
    kept = [bytes(each.body) for each in Proposal.objects.filter(gate__run=run)]
    kept += [bytes(each.data) for each in Event.objects.filter(run_id=run.pk)]
    kept += [bytes(each.text) for each in run.notes.all()]
    client = signed_in(make_user("Ann Okafor", run.team))
    places = [f"/runs/{run.pk}/", f"/runs/{run.pk}/events/", f"/audit/?run={run.pk}", f"/api/runs/{run.pk}"]
    for gate in Gate.objects.filter(run=run).values_list("pk", flat=True):
        places += [f"/gates/{gate}/", f"/api/gates/{gate}", f"/gates/{gate}/preview/"]
    answers = [client.get(place) for place in places]
    assert [answer.status_code for answer in answers] == [200] * len(places)
    texts = {f"kept {at}": text for at, text in enumerate(kept)}
    texts |= {place: answer.content for place, answer in zip(places, answers, strict=True)}
    return [place for place, text in texts.items() if any(each.encode() in text for each in (TOKEN, CODE, OTHER))]


def test_what_was_observed_is_kept_and_shown_without_its_secrets_and_holds_while_it_stands_still(world: World) -> None:
    """The observation's secrets, and the state's in its words, stood on the gate's page and in its proposal."""
    run = waiting(world)
    [condition] = open_gate(run).standing().card.preconditions
    assert condition.label == "with •••••••• the lock is still {value}"
    assert condition.value["heard"][0] == "•••••••• was said"
    assert condition.value["code"].startswith("•••••••• (")
    assert told(run) == []
    decide(run)
    assert advance(run).status == "completed"
    assert state(run)["opened"] is True


def test_a_secret_that_is_another_one_asks_again_and_neither_is_shown(world: World) -> None:
    run = waiting(world)
    decide(run)
    world.turns(OTHER)
    assert advance(run).status == "waiting"
    rows = world_rows(open_gate(run))
    assert [pointer for pointer, _, _ in rows] == ["/lock/code", "/lock/heard/1/again"]
    assert all(before != after and "••••••••" in before and "••••••••" in after for _, before, after in rows)
    assert told(run) == []


def test_the_mark_of_a_secret_is_another_one_in_another_run(world: World) -> None:
    marks = {open_gate(waiting(world)).standing().card.preconditions[0].value["code"] for _ in range(2)}
    assert len(marks) == 2
