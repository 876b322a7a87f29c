"""What the timeline says: one table for the ways a run can stand, then the rows that need more than a word."""

from __future__ import annotations

from datetime import timedelta

import pytest

from agents.effects.fates import Remark
from agents.pages.run import timeline
from agents.pages.run.facts import Story, TimelineDecision
from agents.pages.run.rows import TimelineRow

from .timeline_facts import (
    NOON,
    OPENING,
    REJECTED,
    REJECTION,
    make_decided,
    make_effect,
    make_failure,
    make_fork,
    make_gate,
    make_saved,
    make_story,
)

HELD = make_story(OPENING, [1, 2, 3], next_step="review", gates=(make_gate(3),))
BACK = make_story(REJECTED, [1, 2, 5, 6], next_step="review", gates=(REJECTION, make_gate(6)))
TWICE_BACK = make_story(
    [
        *REJECTED,
        make_saved(7, "review", kind="gate"),
        make_saved(8, "rewind", kind="rewind", parent=2),
    ],
    [1, 2, 8],
    status="running",
    next_step="propose",
    gates=(REJECTION, make_decided(6, "rejected", TimelineDecision("Ann", "reject"), then="back", back_to="propose")),
)
PAID = [*OPENING, make_saved(4, "review", kind="gate"), make_saved(5, "pay"), make_saved(6, "reply")]
APPROVAL = make_decided(3, "approved", TimelineDecision("Ann", "approve"), TimelineDecision("Mira", "approve"))
COMPLETED = make_story(PAID, [1, 2, 3, 4, 5, 6], status="completed", gates=(APPROVAL,))
FAILED = make_story(OPENING[:2], [1, 2], status="failed", next_step="propose", reason="ValueError: no order")
FROZEN = make_story(OPENING[:2], [1, 2], status="failed", next_step="propose", frozen=True)
CANCELLED = make_story(
    OPENING,
    [1, 2, 3],
    status="cancelled",
    next_step="review",
    gates=(make_gate(3, status="withdrawn", closed_at=NOON),),
)
CANCELLED_EARLY = make_story(OPENING[:2], [1, 2], status="cancelled", next_step="propose", reason="Sent twice.")
QUEUED = make_story(OPENING[:1], [1], status="queued", next_step="read_mail")


def told(story: Story) -> list[str]:
    """Each row as "number name: word", with its lane where it is not the first."""
    return [
        f"{row.seq or '-'} {row.name}: {row.mark.word}" + (f" @{row.piece.lane}" if row.piece.lane else "")
        for row in timeline.build(story).rows
    ]


@pytest.mark.parametrize(
    ("story", "expected"),
    [
        (QUEUED, ["1 Input: given", "- Read mail: queued", "- Propose: not yet", "- Review: not yet", "- Pay: not yet",
                  "- Reply: not yet"]),
        (HELD, ["1 Input: given", "2 Read mail: ran", "3 Propose: ran", "- Review: held for", "- Pay: not yet",
                "- Reply: not yet"]),
        (BACK, ["1 Input: given", "2 Read mail: ran", "3 Propose: ran @1", "4 Review: rejected @1", "5 Rewind: to 2",
                "6 Propose: ran", "- Review: held for", "- Pay: not yet", "- Reply: not yet"]),
        (TWICE_BACK, ["1 Input: given", "2 Read mail: ran", "3 Propose: ran @1", "4 Review: rejected @1",
                      "5 Rewind: to 2 @2", "6 Propose: ran @2", "7 Review: rejected @2", "8 Rewind: to 2",
                      "- Propose: running", "- Review: not yet", "- Pay: not yet", "- Reply: not yet"]),
        (COMPLETED, ["1 Input: given", "2 Read mail: ran", "3 Propose: ran", "4 Review: approved", "5 Pay: ran",
                     "6 Reply: ran"]),
        (FAILED, ["1 Input: given", "2 Read mail: ran", "- Propose: failed", "- Review: did not run",
                  "- Pay: did not run", "- Reply: did not run"]),
        (FROZEN, ["1 Input: given", "2 Read mail: ran", "- Propose: frozen", "- Review: did not run",
                  "- Pay: did not run", "- Reply: did not run"]),
        (CANCELLED, ["1 Input: given", "2 Read mail: ran", "3 Propose: ran", "- Review: withdrawn",
                     "- Cancel: cancelled", "- Pay: did not run", "- Reply: did not run"]),
        (CANCELLED_EARLY, ["1 Input: given", "2 Read mail: ran", "- Cancel: cancelled", "- Propose: did not run",
                           "- Review: did not run", "- Pay: did not run", "- Reply: did not run"]),
    ],
    ids=["queued", "held", "branch", "two branches", "completed", "failed", "frozen", "cancelled", "cancelled early"],
)  # fmt: skip
def test_a_run_is_told_row_by_row(story: Story, expected: list[str]) -> None:
    assert told(story) == expected


def row_named(story: Story, name: str, at: int = 0) -> TimelineRow:
    return [row for row in timeline.build(story).rows if row.name == name][at]


def test_a_rejection_names_who_and_where_to_and_quotes_the_comment() -> None:
    row = row_named(BACK, "Review")
    assert row.remarks == [Remark("by Bob, back to “Propose”:", "Only the second came back.")]
    assert row.took == "25 min"


def test_an_approval_names_everybody_who_counted() -> None:
    assert row_named(COMPLETED, "Review").remarks == [Remark("by Ann and Mira")]


def test_a_lapsed_approval_is_not_named() -> None:
    gate = make_decided(3, "edited", TimelineDecision("Ann", "approve", counts=False), TimelineDecision("Mira", "edit"))
    row = row_named(make_story(PAID, [1, 2, 3, 4, 5, 6], status="completed", gates=(gate,)), "Review")
    assert (row.mark.word, row.remarks) == ("approved with an edit", [Remark("by Mira")])


@pytest.mark.parametrize(
    ("outcome", "word"),
    [("expired", "expired"), ("answered", "answered"), ("approved", "approved"), ("rejected", "rejected")],
)
def test_expired_is_not_rejected_and_each_outcome_has_its_word(outcome: str, word: str) -> None:
    story = make_story(PAID[:4], [1, 2, 3, 4], status="running", next_step="pay", gates=(make_decided(3, outcome),))
    assert row_named(story, "Review").mark.word == word


def test_the_open_gate_carries_the_hold_line_and_the_time_it_began() -> None:
    row = row_named(HELD, "Review")
    assert row.on_hold
    assert row.since == NOON - timedelta(minutes=25)
    assert (row.link, row.target) == ("gate", 3)


def test_a_gate_that_the_reader_may_not_open_is_no_link() -> None:
    story = make_story(OPENING, [1, 2, 3], next_step="review", gates=(make_gate(3, visible=False),))
    assert row_named(story, "Review").link == ""


def test_a_quorum_says_how_many_agreed_and_a_rejection_does_not_count_as_agreeing() -> None:
    gate = make_gate(
        3, quorum=2, decisions=(TimelineDecision("Ann", "approve"), TimelineDecision("Bob", "approve", counts=False))
    )
    row = row_named(make_story(OPENING, [1, 2, 3], next_step="review", gates=(gate,)), "Review")
    assert row.remarks == [Remark("1 of 2 approved")]


def test_failed_attempts_stand_in_the_row_of_the_step_that_landed_in_the_end() -> None:
    failures = (make_failure(2, "propose", 1), make_failure(2, "propose", 2))
    story = make_story(OPENING, [1, 2, 3], next_step="review", gates=(make_gate(3),), failures=failures)
    assert [failure.attempt for failure in row_named(story, "Propose").failures] == [1, 2]
    assert not row_named(story, "Review").failures


def test_failed_attempts_of_a_step_that_never_landed_stand_where_the_run_ended() -> None:
    failures = (make_failure(2, "propose"),)
    story = make_story(OPENING[:2], [1, 2], status="failed", next_step="propose", failures=failures)
    assert row_named(story, "Propose").failures == list(failures)


def test_a_recovery_gate_shows_the_attempts_that_it_asks_about() -> None:
    gate = make_gate(2, step="propose", kind="recovery")
    story = make_story(OPENING[:2], [1, 2], next_step="propose", gates=(gate,), failures=(make_failure(2, "propose"),))
    row = row_named(story, "Propose")
    assert row.on_hold
    assert len(row.failures) == 1
    assert row.remarks == [Remark("asks how to go on after a fault")]


@pytest.mark.parametrize(
    ("status", "irreversible", "words"),
    [
        ("done", False, "completed"),
        ("done", True, "completed, cannot be undone"),
        ("unknown", False, "unknown: it may have happened"),
        ("failed", False, "failed, confirmed not executed"),
    ],
)
def test_an_effects_row_says_what_became_of_it(status: str, irreversible: bool, words: str) -> None:
    effects = (make_effect(4, "pay", status, irreversible=irreversible),)
    story = make_story(PAID, [1, 2, 3, 4, 5, 6], status="completed", gates=(APPROVAL,), effects=effects)
    assert row_named(story, "Pay").remarks == [Remark(words)]


def test_what_a_step_noted_is_quoted_and_never_mixed_with_our_words() -> None:
    saved = [*OPENING[:2], make_saved(3, "propose", words=("Lenses were kept.",), attempt=2)]
    row = row_named(make_story(saved, [1, 2, 3], status="running", next_step="review"), "Propose")
    assert row.remarks == [Remark("at attempt 2"), Remark("", "Lenses were kept.")]


def test_a_fork_stands_under_the_checkpoint_that_it_left_in_a_lane_of_its_own() -> None:
    story = make_story(OPENING, [1, 2, 3], next_step="review", gates=(make_gate(3),), forks=(make_fork(2),))
    drawn = timeline.build(story)
    assert [(row.name, row.piece.lane) for row in drawn.rows][:4] == [
        ("Input", 0), ("Read mail", 0), ("R-31", 1), ("Propose", 0),
    ]  # fmt: skip
    assert drawn.summary == "1 fork"


def test_a_branch_that_ended_at_a_withdrawn_gate_comes_back_from_that_gate() -> None:
    saved = [*OPENING, make_saved(4, "rewind", kind="rewind", parent=2)]
    withdrawn = make_gate(3, status="withdrawn", closed_at=NOON)
    drawn = timeline.build(make_story(saved, [1, 2, 4], status="running", next_step="propose", gates=(withdrawn,)))
    gate = next(row for row in drawn.rows if row.name == "Review")
    assert (gate.piece.lane, gate.abandoned) == (1, True)
    assert [line.kind for line in gate.piece.lines if line.top == "25"] == ["back"]


def test_a_window_of_older_checkpoints_tells_nothing_of_what_is_ahead() -> None:
    story = make_story(OPENING, [1, 2, 3], status="running", next_step="review", newest=False)
    assert told(story) == ["1 Input: given", "2 Read mail: ran", "3 Propose: ran"]


def test_the_legend_explains_only_marks_that_occur() -> None:
    assert [sign.word for sign in timeline.build(COMPLETED).legend] == ["ran"]
    assert [sign.word for sign in timeline.build(BACK).legend] == [
        "ran",
        "rejected",
        "on an abandoned branch",
        "rewind",
        "held",
        "not yet",
    ]


def test_branches_are_counted() -> None:
    assert timeline.build(TWICE_BACK).summary == "2 branches"


def test_an_answered_gate_says_what_was_answered() -> None:
    gate = make_decided(3, "answered", TimelineDecision("Ann", "answer"), answer="yes", answer_label="It happened")
    row = row_named(make_story(PAID, [1, 2, 3, 4, 5, 6], status="completed", gates=(gate,)), "Review")
    assert row.remarks == [Remark("“It happened” by Ann")]


def test_many_rows_of_abandoned_branches_fold_and_where_the_run_is_stands_at_the_top() -> None:
    """The end of a long run was screens below, behind what the run had left long ago."""
    left = [make_saved(number, "propose") for number in range(3, 11)]
    saved = [*OPENING[:2], *left, make_saved(11, "rewind", kind="rewind", parent=2), make_saved(12, "propose")]
    long = timeline.build(make_story(saved, [1, 2, 11, 12], next_step="review", gates=(make_gate(12),)))
    assert long.abandoned == len(left)
    assert long.now is not None
    assert (long.now.name, long.now.on_hold) == ("Review", True)
    short = timeline.build(BACK)
    assert (short.abandoned, short.now) == (0, None)
