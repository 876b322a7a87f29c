"""Starting runs: the whole input checked first, every error named; the command that people type."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError

from agents.compatibility import edited_states
from agents.definition import registry
from agents.errors import InputRefused
from agents.runs.course import Course, CourseTurn
from agents.runs.start import start_run
from approvals.decisions import validators
from checkpoints import actors
from checkpoints.models import Run
from tests.factories import ann, make_team
from tests.factories.driven_runs import make_run


def command(*arguments: str, **options: Any) -> str:
    out = io.StringIO()
    call_command("run_agent", *arguments, stdout=out, **options)
    return out.getvalue()


def test_every_error_of_an_input_is_named_at_once_by_its_pointer() -> None:
    with pytest.raises(InputRefused) as refused:
        make_run("payer", amount="many", mailed="perhaps", surprise=1, proposal={"to": "x", "amount": -1})
    pointers = {error["pointer"] for error in refused.value.errors}
    assert pointers == {"/amount", "/mailed", "/surprise", "/proposal/amount"}
    assert Run.objects.filter(plan__agent="payer", title__contains="many").count() == 0


@pytest.mark.parametrize("value", ["x" * 17_000_000, "\ud800"], ids=["17 MB", "a lone surrogate"])
def test_a_value_that_cannot_be_saved_is_refused_by_its_pointer(value: str) -> None:
    with pytest.raises(InputRefused) as refused:
        make_run("payer", mode=value)
    assert [error["pointer"] for error in refused.value.errors] == ["/mode"]


def test_the_same_key_gives_the_same_run() -> None:
    team, key = make_team(), f"key-{make_team().pk}"
    runs = {start_run("hopper", {}, by=actors.SYSTEM, team=team, key=key).pk for _ in range(3)}
    assert len(runs) == 1


def test_a_title_takes_one_clean_line() -> None:
    run = start_run("hopper", {}, by=actors.SYSTEM, team=make_team(), title="two\nlines \0 and\u202e more " + "x" * 300)
    assert run.title.startswith("two lines and more xxx")
    assert len(run.title) == 200


def test_the_command_starts_a_run_for_whoever_asked_and_prints_where_it_is() -> None:
    team = make_team()
    person = ann(team)
    said = command("payer", "--input", '{"amount": "3.50"}', "--as", person.username)
    run = Run.objects.filter(team=team).latest("pk")
    assert (run.title, run.started_by, run.started_as) == ("pay 3.50", person, f"user:{person.pk}")
    assert f"/runs/{run.pk}/" in said


def test_the_command_reads_a_file_of_several_inputs(tmp_path: Path) -> None:
    team = make_team()
    file = tmp_path / "inputs.json"
    file.write_text(json.dumps([{"amount": "1"}, {"amount": "2"}]))
    command("payer", "--input", str(file), "--team", team.name)
    assert list(Run.objects.filter(team=team).order_by("pk").values_list("title", flat=True)) == ["pay 1", "pay 2"]


def test_the_command_starts_nothing_where_one_of_the_inputs_is_wrong() -> None:
    team = make_team()
    with pytest.raises(CommandError, match=r"The input was refused:\n  /amount: "):
        command("payer", "--input", '[{"amount": "1"}, {"amount": "x"}]', "--team", team.name)
    assert not Run.objects.filter(team=team).exists()


REFUSED = [
    (("nobody", "--input", "{}"), "There is no agent named nobody; known: asker"),
    (("payer", "--input", "/no/such/file"), "neither JSON nor a file or folder"),
    (("payer", "--input", '{"a": 1, "a": 2}'), "a"),
    (("payer", "--input", "{}", "--team", "no such team"), "There is no team named no such team; known: "),
    (("payer", "--input", "{}"), "Say which team the run belongs to: --team NAME, or `team` in the class; known: "),
    (("payer", "--input", '["x"]'), "must be a JSON object"),
    (("payer", "--input", "{}", "--as", "nobody"), "There is no user named nobody"),
    (("payer", "--input", "."), "reads its input from JSON only"),
]


@pytest.mark.parametrize(("arguments", "sentence"), REFUSED, ids=[sentence for _, sentence in REFUSED])
def test_the_command_says_in_a_sentence_what_it_cannot_do(arguments: tuple[str, ...], sentence: str) -> None:
    with pytest.raises(CommandError, match=sentence):
        command(*arguments)


def test_an_edited_state_is_checked_by_the_agents_own_model() -> None:
    run = make_run("payer")
    plan = run.plan
    state = {"proposal": {"to": "ann", "amount": "5000"}, "mailed": "perhaps"}
    kept, faults = validators.validated(plan, state)
    assert (kept, {fault["pointer"] for fault in faults}) == (state, {"/proposal/amount", "/mailed"})
    good = {"proposal": {"to": "ann", "amount": 5}}
    assert validators.validated(plan, good) == ({"proposal": {"to": "ann", "amount": "5"}}, [])


def test_a_plan_that_is_not_known_here_is_left_to_others() -> None:
    plan = make_run("payer").plan
    plan.pk = 0
    assert edited_states.validate(plan, {}) is None


def test_an_edited_state_is_drawn_by_the_gates_own_method() -> None:
    plan = make_run("payer").plan
    card = edited_states.redraw(plan, "review", {"proposal": {"to": "bob", "amount": "4.00"}}, {})
    assert card is not None
    assert card.title == "Pay 4.00 to bob"
    assert registry.agent_named("payer").spec.step("review").kind == "gate"


RUN, OTHER = 7, 3


@pytest.mark.parametrize(
    ("head", "turns", "way"),
    [
        (0, (), []),
        (5, (), [1, 2, 3, 4, 5]),
        (6, (CourseTurn(5, RUN, 2),), [1, 2, 5, 6]),  # sent back once
        (9, (CourseTurn(5, RUN, 2), CourseTurn(8, RUN, 3)), [1, 2, 3, 8, 9]),  # and then to what the first had left
        (9, (CourseTurn(5, RUN, 3), CourseTurn(8, RUN, 6)), [1, 2, 3, 5, 6, 8, 9]),
        (6, (CourseTurn(5, OTHER, 4),), [5, 6]),  # a fork that went back over the point at which it began
    ],
)
def test_the_way_is_what_leads_to_the_head(head: int, turns: tuple[CourseTurn, ...], way: list[int]) -> None:
    assert sorted(Course(RUN, head, turns).on_path(range(0, 20))) == way


def test_a_run_waits_where_it_only_asked_since() -> None:
    asked = Course(RUN, 6, aside=((5, "pay"), (6, "pay")))
    assert [asked.awaits(base, "pay") for base in (0, 3, 4, 5, 6)] == [False, False, True, True, True]
    assert not asked.awaits(4, "reply")
