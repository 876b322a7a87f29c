"""The research agent: five inquiries at once, two of which ask; a rewind takes over what is there."""

from __future__ import annotations

from agents.examples.research import Research
from agents.runs.start import start_run
from approvals.models import Gate
from checkpoints import actors
from checkpoints.models import Run
from tests.factories import ann, decide, make_team
from tests.factories.driven_runs import advance, state
from tests.harness.known_agents import fixtures_of
from tests.harness.session import ROOT

own_agents = fixtures_of("agents.examples.research")[0]
QUESTIONS = ROOT / "agents" / "examples" / "research" / "questions.json"


def make_research() -> Run:
    """A run over the questions that come with it, at rest: its inquiries have answered, or ask."""
    run = start_run("research", Research.inputs_from(QUESTIONS)[0], by=actors.SYSTEM, team=make_team())
    return settled(run)


def settled(run: Run) -> Run:
    for _ in range(10):
        before = list(Run.objects.filter(team=run.team).order_by("pk").values_list("seq", "status", "version"))
        for each in Run.objects.filter(team=run.team, status__in=["queued", "running"]).order_by("pk"):
            advance(each)
        if before == list(Run.objects.filter(team=run.team).order_by("pk").values_list("seq", "status", "version")):
            break
    run.refresh_from_db()
    return run


def children(run: Run) -> list[Run]:
    return list(Run.objects.filter(parent=run).order_by("pk"))


def gates(run: Run) -> list[Gate]:
    return list(Gate.objects.open().select_related("run__plan", "policy").filter(run__parent=run).order_by("pk"))


def test_two_of_five_inquiries_ask_and_decided_in_the_other_order_they_make_one_report() -> None:
    run = make_research()
    assert (run.status, run.next_step) == ("waiting", "ask_around")
    assert sorted(child.status for child in children(run)) == ["completed"] * 3 + ["waiting"] * 2
    ended = [state(child)["turns"] for child in children(run) if child.status == "completed"]
    assert [turns[0]["role"] for turns in ended] == ["summary"] * 3  # their conversations were summed up
    first, second = gates(run)
    assert [first.step, second.step] == ["ask", "ask"]
    decide(second, ann(run.team))
    assert settled(run).status == "waiting"
    decide(first, ann(run.team), "reject", then="back", comment="Not that one.")
    assert settled(run).status == "completed"
    report = state(run)["report"]
    asked = [line for line in report.splitlines() if line.endswith("?")]
    assert asked[1:] == state(run)["questions"]
    assert "cubic metre" not in report  # restricted, and refused
    assert "fender of the north quay" in report  # restricted, and allowed
