"""What the timeline says: a table for the ways a run can stand, rows that need more than a word, and branches."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from agents.effects.fates import Remark
from agents.effects.ledger import LedgerRow
from agents.models import Failure
from agents.pages.run import head as page_head
from agents.pages.run import timeline
from agents.pages.run.facts import (
    Story,
    TimelineCheckpoint,
    TimelineDecision,
    TimelineFork,
    TimelineGate,
)
from agents.pages.run.rows import TimelineRow
from checkpoints.models import Run
from checkpoints.runs.plans import StepSpec

NOON = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)
PLAN = (
    StepSpec("read_mail"),
    StepSpec("propose"),
    StepSpec("review", kind="gate"),
    StepSpec("pay", kind="effect", undo="cancel_payment", guarded=True),
    StepSpec("reply", kind="effect", irreversible=True, guarded=True),
)


def key(seq: int) -> str:
    """The id of the checkpoint `seq`, in hex."""
    return UUID(int=seq).hex


def make_saved(
    seq: int, step: str, *, parent: int | None = None, kind: str = "step", **more: Any
) -> TimelineCheckpoint:
    """The checkpoint `seq`, after the one before it unless `parent` names another."""
    after = seq - 1 if parent is None else parent
    times: dict[str, Any] = {"at": NOON + timedelta(seconds=seq), "took": timedelta(milliseconds=400)}
    return TimelineCheckpoint(
        id=key(seq), seq=seq, parent=key(after) if after else "", kind=kind, step=step, **(times | more)
    )


def make_gate(base: int, **more: Any) -> TimelineGate:
    """A gate at `review` on the state of the checkpoint `base`, open for 25 minutes."""
    facts: dict[str, Any] = {
        "id": base, "base": key(base), "step": "review", "kind": "review", "status": "open", "title": "Refund?",
        "opened_at": NOON - timedelta(minutes=25),
    }  # fmt: skip
    return TimelineGate(**(facts | more))


def make_decided(base: int, outcome: str, *said: TimelineDecision, **more: Any) -> TimelineGate:
    """A gate that was closed at noon."""
    return make_gate(base, status="decided", outcome=outcome, decisions=said, closed_at=NOON, **more)


def make_story(
    saved: list[TimelineCheckpoint], path: list[int], *, status: str = "waiting", next_step: str = "", **more: Any
) -> Story:
    """A story whose head is the last of `path`."""
    of_run = ("reason", "attempts", "wake_at", "settling", "ending", "halt")
    columns: dict[str, Any] = {name: more.pop(name) for name in of_run if name in more}
    columns |= {"frozen_at": NOON} if more.pop("frozen", False) else {}
    run = Run(status=status, next_step=next_step, **columns)
    ids = frozenset(map(key, path))
    facts: dict[str, Any] = {"plan": PLAN, "started_by": "Ann Okafor"}
    return Story(now=NOON, run=run, head=key(path[-1]), saved=tuple(saved), path=ids, **(facts | more))


def make_failure(base: int, step: str, attempt: int = 1) -> Failure:
    """One attempt that ended in an exception."""
    told: dict[str, Any] = {"error": "ValueError: no order", "traceback": "Traceback …".encode()}
    return Failure(base=UUID(int=base), step=step, attempt=attempt, at=NOON, **told)


def make_effect(base: int, step: str, status: str = "done", **more: Any) -> LedgerRow:
    """One row of the effect ledger."""
    facts: dict[str, Any] = {"irreversible": False, "key": "ab" * 32, "status": status}
    return LedgerRow(step=step, base=key(base), **(facts | more))


def make_fork(origin: int, run: int = 31) -> TimelineFork:
    """A run that started from the checkpoint `origin`."""
    return TimelineFork(run, key(origin), "completed", NOON, "Bob Lindqvist")


OPENING = [make_saved(1, "input", kind="input"), make_saved(2, "read_mail"), make_saved(3, "propose")]
REJECTED = [
    *OPENING,
    make_saved(4, "review", kind="gate"),
    make_saved(5, "rewind", kind="rewind", parent=2),
    make_saved(6, "propose"),
]
BOB_REJECTS = TimelineDecision("Bob", "reject", "Only the second came back.")
REJECTION = make_decided(3, "rejected", BOB_REJECTS, then="back", back_to="propose")


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
    assert timeline.build(TWICE_BACK).summary == "2 branches"


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
    back = [sign.word for sign in timeline.build(BACK).legend]
    assert back == ["ran", "rejected", "on an abandoned branch", "rewind", "held", "not yet"]


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


PAID_ONCE = [*OPENING, make_saved(4, "review", kind="gate"), make_saved(5, "pay", execution="pay/a/0")]
REWOUND = [*PAID_ONCE, make_saved(6, "propose", kind="rewind", parent=2, by="Ann Okafor", why="The wrong order.")]


def row_at(story: Story, seq: int) -> TimelineRow:
    return next(row for row in timeline.build(story).rows if row.seq == seq)


def make_refusal(base: int, step: str = "propose", *, seq: int = 0, **more: Any) -> Failure:
    """One validator's words about what `step` returned."""
    said: dict[str, Any] = {"validator": "in_budget", "seq": seq or base, "id": base, "attempt": 1}
    told = {"error": "cut", "traceback": b"Over the budget by 12.", "at": NOON}
    return Failure(base=UUID(int=base), step=step, **(said | told | more))


def test_a_rewind_says_where_to_by_whom_and_why() -> None:
    row = row_at(make_story(REWOUND, [1, 2, 6], status="running", next_step="propose"), 6)
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
    row = row_at(make_story(saved, [1, 2, 3, 4], status="running", next_step="review"), 4)
    assert (row.name, row.mark.word) == (name, word)


def test_what_the_runtime_notes_where_nothing_ran_is_not_quoted_as_the_agents() -> None:
    saved = [*OPENING, make_saved(4, "propose", kind="reused", twin="3", words=("Same input and code.",))]
    row = row_at(make_story(saved, [1, 2, 3, 4], status="running", next_step="review"), 4)
    assert row.remarks == [Remark("Same input and code.")]


def test_an_answer_that_stands_is_no_reused_step_and_nothing_to_ask_is_no_answer() -> None:
    stood = make_saved(4, "review", kind="reused", twin="3", words=("Gate 7 was answered for exactly this.",))
    row = row_at(make_story([*OPENING, stood], [1, 2, 3, 4], status="running", next_step="pay"), 4)
    assert row.mark.word == "earlier approval reused"
    assert row.remarks == [Remark("given at 3"), Remark("Gate 7 was answered for exactly this.")]
    silent = make_saved(4, "review", kind="reused", twin="3")
    row = row_at(make_story([*OPENING, silent], [1, 2, 3, 4], status="running", next_step="pay"), 4)
    assert row.mark.word == "reused from 3"


def test_an_effect_that_was_taken_back_marks_its_row() -> None:
    effects = (make_effect(4, "pay", "undone", id=1), make_effect(6, "pay", id=2, undoes=1, settled_at=NOON))
    row = row_at(make_story(REWOUND, [1, 2, 6], status="running", next_step="propose", effects=effects), 5)
    assert (row.mark.word, row.mark.shape, row.abandoned) == ("undone", "undone", True)
    assert row.remarks == [Remark("undone", at=NOON)]


def test_an_effect_off_the_path_says_so_until_it_is_settled() -> None:
    effects = (make_effect(4, "pay", undo="cancel_payment", unsettled=True),)
    row = row_at(make_story(REWOUND, [1, 2, 6], status="running", next_step="propose", effects=effects), 5)
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
    assert not row_at(story, 4).failures


def test_a_repair_one_ring_wider_leaves_the_branch_that_was_refused() -> None:
    saved = [*OPENING, make_saved(4, "review", kind="repair", parent=1, next_step="read_mail")]
    story = make_story(
        saved, [1, 4], status="running", next_step="read_mail", failures=(make_refusal(3, "review", ring=1),)
    )
    assert told(story)[:5] == [
        "1 Input: given", "2 Read mail: ran @1", "3 Propose: ran @1", "- Review: refused @1",
        "4 Repair: back to “Read mail”",
    ]  # fmt: skip
    assert Remark("to the state at 1, as a new checkpoint") in row_at(story, 4).remarks


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
