"""What the timeline says where a run was sent back, edited, repaired or brought up, and what was reused or undone."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from agents.effects.fates import Remark
from agents.models import Failure
from agents.pages.run import head as page_head
from agents.pages.run import timeline
from agents.pages.run.facts import Story
from agents.pages.run.rows import TimelineRow

from .test_timeline import told
from .timeline_facts import (
    NOON,
    OPENING,
    make_effect,
    make_gate,
    make_saved,
    make_story,
)

PAID = [*OPENING, make_saved(4, "review", kind="gate"), make_saved(5, "pay", execution="pay/a/0")]
REWOUND = [*PAID, make_saved(6, "propose", kind="rewind", parent=2, by="Ann Okafor", why="The wrong order.")]


def row_of(story: Story, seq: int) -> TimelineRow:
    return next(row for row in timeline.build(story).rows if row.seq == seq)


def make_refusal(base: int, step: str = "propose", *, seq: int = 0, **more: Any) -> Failure:
    """One validator's words about what `step` returned."""
    said: dict[str, Any] = {"validator": "in_budget", "seq": seq or base, "id": base, "attempt": 1}
    told = {"error": "cut", "traceback": b"Over the budget by 12.", "at": NOON}
    return Failure(base=UUID(int=base), step=step, **(said | told | more))


def test_a_rewind_says_where_to_by_whom_and_why() -> None:
    row = row_of(make_story(REWOUND, [1, 2, 6], status="running", next_step="propose"), 6)
    assert row.mark.word == "to 2"
    assert row.remarks == [
        Remark("to the state after “Read mail”, as a new checkpoint"),
        Remark("by Ann Okafor:", "The wrong order."),
    ]


@pytest.mark.parametrize(
    ("kind", "facts", "name", "word"),
    [
        ("edit", {"by": "Ann Okafor"}, "Edit", "edited by hand"),
        ("repair", {"next_step": "propose"}, "Repair", "back to “Propose”"),
        ("upcast", {"version": "2"}, "Upgrade", "to version 2"),
        ("fork", {}, "Fork", "ran"),
        ("reopen", {}, "Propose", "asked again"),
        ("reused", {"twin": "3"}, "Propose", "reused from 3"),
        ("reused", {"twin": "3 of R-7"}, "Propose", "reused from 3 of R-7"),
        ("reused", {}, "Propose", "reused"),
    ],
)
def test_each_kind_of_checkpoint_has_its_word(kind: str, facts: dict[str, Any], name: str, word: str) -> None:
    saved = [*OPENING, make_saved(4, "propose", kind=kind, **facts)]
    row = row_of(make_story(saved, [1, 2, 3, 4], status="running", next_step="review"), 4)
    assert (row.name, row.mark.word) == (name, word)


def test_what_the_runtime_notes_where_nothing_ran_is_not_quoted_as_the_agents() -> None:
    saved = [*OPENING, make_saved(4, "propose", kind="reused", twin="3", words=("Same input and code.",))]
    row = row_of(make_story(saved, [1, 2, 3, 4], status="running", next_step="review"), 4)
    assert row.remarks == [Remark("Same input and code.")]


def test_an_answer_that_stands_is_no_reused_step_and_nothing_to_ask_is_no_answer() -> None:
    stood = make_saved(4, "review", kind="reused", twin="3", words=("Gate 7 was answered for exactly this.",))
    row = row_of(make_story([*OPENING, stood], [1, 2, 3, 4], status="running", next_step="pay"), 4)
    assert row.mark.word == "earlier approval reused"
    assert row.remarks == [Remark("given at 3"), Remark("Gate 7 was answered for exactly this.")]
    silent = make_saved(4, "review", kind="reused", twin="3")
    row = row_of(make_story([*OPENING, silent], [1, 2, 3, 4], status="running", next_step="pay"), 4)
    assert row.mark.word == "reused from 3"


def test_an_effect_that_was_taken_back_marks_its_row() -> None:
    effects = (make_effect(4, "pay", "undone", id=1), make_effect(6, "pay", id=2, undoes=1, settled_at=NOON))
    row = row_of(make_story(REWOUND, [1, 2, 6], status="running", next_step="propose", effects=effects), 5)
    assert (row.mark.word, row.mark.shape, row.abandoned) == ("undone", "undone", True)
    assert row.remarks == [Remark("undone", at=NOON)]


def test_an_effect_off_the_path_says_so_until_it_is_settled() -> None:
    effects = (make_effect(4, "pay", undo="cancel_payment", unsettled=True),)
    row = row_of(make_story(REWOUND, [1, 2, 6], status="running", next_step="propose", effects=effects), 5)
    assert row.remarks == [Remark("completed, on an abandoned branch now")]


def test_a_refused_output_has_a_row_of_its_own_from_which_the_repair_comes_back() -> None:
    saved = [*OPENING[:2], make_saved(3, "propose", kind="repair", next_step="propose"), make_saved(4, "propose")]
    refused = (make_refusal(2), make_refusal(2, validator="in_time", id=9))
    story = make_story(saved, [1, 2, 3, 4], status="running", next_step="review", failures=refused)
    assert told(story)[:5] == [
        "1 Input: given", "2 Read mail: ran", "- Propose: refused @1", "3 Repair: back to “Propose”", "4 Propose: ran",
    ]  # fmt: skip
    assert timeline.build(story).summary == ""
    row = timeline.build(story).rows[2]
    assert row.remarks == [
        Remark("by in_budget:", "Over the budget by 12."),
        Remark("by in_time:", "Over the budget by 12."),
    ]
    assert [line.kind for line in row.piece.lines if line.top == "25"] == ["back"]
    assert not row_of(story, 4).failures


def test_a_repair_one_ring_wider_leaves_the_branch_that_was_refused() -> None:
    saved = [*OPENING, make_saved(4, "review", kind="repair", parent=1, next_step="read_mail")]
    story = make_story(
        saved, [1, 4], status="running", next_step="read_mail", failures=(make_refusal(3, "review", ring=1),)
    )
    assert told(story)[:5] == [
        "1 Input: given", "2 Read mail: ran @1", "3 Propose: ran @1", "- Review: refused @1",
        "4 Repair: back to “Read mail”",
    ]  # fmt: skip
    assert Remark("to the state at 1, as a new checkpoint") in row_of(story, 4).remarks


def test_a_refusal_that_ends_at_a_person_stands_before_the_gate_that_asks() -> None:
    gate = make_gate(2, step="propose", kind="recovery")
    story = make_story(OPENING[:2], [1, 2], next_step="propose", gates=(gate,), failures=(make_refusal(2),))
    assert told(story)[2:4] == ["- Propose: refused @1", "- Propose: held for"]


def test_a_step_aside_to_ask_closes_no_other_steps_gate() -> None:
    withdrawn = make_gate(3, status="withdrawn", closed_at=NOON)
    asks = make_gate(4, step="pay", kind="recovery", id=44)
    saved = [*OPENING, make_saved(4, "pay", kind="recovery", next_step="review")]
    story = make_story(saved, [1, 2, 3, 4], next_step="review", gates=(withdrawn, asks))
    assert told(story)[2:6] == [
        "3 Propose: ran", "- Review: withdrawn", "4 Pay: paused to ask", "- Pay: held for",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("ending", "line"),
    [
        ("completed", "then the run completes"),
        ("cancelled", "then the run is cancelled"),
        ("failed", "then the run fails"),
        ("", "then the run goes on with “Propose”"),
    ],
)
def test_a_run_that_settles_its_effects_says_so_and_what_comes_then(ending: str, line: str) -> None:
    story = make_story(OPENING[:2], [1, 2], status="running", next_step="propose", settling=True, ending=ending)
    assert page_head.status(story.run).word == "Settling its effects"
    assert page_head.status_line(story, None) == line


def test_a_run_that_ends_once_it_is_settled_has_no_steps_ahead() -> None:
    settles = {"settling": True, "ending": "cancelled"}
    story = make_story(OPENING, [1, 2, 3], status="running", next_step="review", **settles)
    assert told(story)[3:] == [
        "- Settle: settling its effects", "- Review: did not run", "- Pay: did not run", "- Reply: did not run",
    ]  # fmt: skip


def test_a_run_that_was_asked_to_halt_says_so() -> None:
    story = make_story(OPENING[:2], [1, 2], status="running", next_step="propose", halt=True)
    assert "will stop after this step" in page_head.status_line(story, None)


def test_the_legend_explains_every_mark_that_occurs_and_draws_it() -> None:
    effects = (make_effect(4, "pay", "undone"),)
    saved = [*REWOUND, make_saved(7, "propose", kind="reused", twin="3")]
    legend = timeline.build(make_story(saved, [1, 2, 6, 7], status="completed", effects=effects)).legend
    assert [sign.word for sign in legend] == ["ran", "reused", "undone", "on an abandoned branch", "rewind"]
    assert all('class="glyph"' in sign.svg for sign in legend if sign.word not in ("ran", "on an abandoned branch"))
