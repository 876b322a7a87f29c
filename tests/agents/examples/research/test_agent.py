"""The research agent: five inquiries at once, two of which ask; a rewind takes over what is there."""

from __future__ import annotations

from agents.examples.research import Research, Turn, search_corpus, trim_turns
from agents.moves import rewind
from agents.runs.start import start_run
from approvals.models import Gate
from checkpoints import actors
from checkpoints.models import Run
from tests.factories import ann, decide, make_team
from tests.factories.driven_runs import advance, state
from tests.harness.session import ROOT

QUESTIONS = ROOT / "agents" / "examples" / "research" / "questions.json"


def make_research() -> Run:
    """A run over the questions that come with it, at rest: its inquiries have answered, or ask."""
    run = start_run("research", Research.inputs_from(QUESTIONS)[0], by=actors.SYSTEM, team=make_team())
    return settled(run)


def settled(run: Run) -> Run:
    """The run, once it and its children are at rest."""
    for _ in range(10):
        before = list(Run.objects.filter(team=run.team).order_by("pk").values_list("seq", "status", "version"))
        for each in Run.objects.filter(team=run.team, status__in=["queued", "running"]).order_by("pk"):
            advance(each)
        if before == list(Run.objects.filter(team=run.team).order_by("pk").values_list("seq", "status", "version")):
            break
    run.refresh_from_db()
    return run


def children(run: Run) -> list[Run]:
    """The inquiries, in the order of their questions."""
    return list(Run.objects.filter(parent=run).order_by("pk"))


def gates(run: Run) -> list[Gate]:
    """The open gates of its inquiries, oldest first."""
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


def test_rewound_it_takes_over_what_is_there_and_asks_only_a_changed_question_again() -> None:
    run = make_research()
    for gate in gates(run):
        decide(gate, ann(run.team))
    assert settled(run).status == "completed"
    before = {child.pk: child.seq for child in children(run)}
    rewind.rewind(run, to=2, by=ann(run.team))
    assert settled(run).status == "completed"
    assert {child.pk: child.seq for child in children(run)} == before
    changed = "How many boats land at the south quay?"
    rewind.edit(run, at=2, patch=[{"op": "replace", "path": "/questions/2", "value": changed}], by=ann(run.team))
    assert settled(run).status == "completed"
    assert [child.title for child in children(run) if child.pk not in before] == [changed]
    assert all(child.status == "completed" for child in children(run))  # the old one has nothing to undo
    assert "Nineteen boats" in state(run)["report"]
    assert "mean tidal range" not in state(run)["report"]


def test_a_conversation_that_is_too_long_is_summed_up() -> None:
    turns = [Turn(role="reader", text=f"{number} " + "word " * 40) for number in range(12)]
    kept = trim_turns(turns, 900)
    assert kept[0].role == "summary"
    assert sum(len(turn.text) for turn in kept[1:]) <= 900
    assert kept[1:] == turns[-len(kept) + 1 :]
    assert all(f"reader: {number} " in kept[0].text for number in range(12 - len(kept) + 1))


def test_passages_are_found_by_the_words_they_share() -> None:
    found = search_corpus("How much power do the turbines give the cranes?", 2)
    assert [each.source for each in found] == ["wind", "wind"]
    assert search_corpus("xyzzy", 4) == []
