"""What the timeline says: the ways a run and an effect can stand, rows, branches, and the lines between them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from agents.effects.fates import Fate, Remark, fates_of
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
from agents.pages.run.lanes import LaneNode, count_lanes, lay_out
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
        "id": base, "base": key(base), "step": "review", "kind": "review", "status": "open",
        "opened_at": NOON - timedelta(minutes=25),
    }  # fmt: skip
    return TimelineGate(**(facts | more))


def make_decided(base: int, outcome: str, *said: TimelineDecision, **more: Any) -> TimelineGate:
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
    told: dict[str, Any] = {"error": "ValueError: no order", "traceback": "Traceback …".encode()}
    return Failure(base=UUID(int=base), step=step, attempt=attempt, at=NOON, **told)


def make_effect(base: int, step: str, status: str = "done", **more: Any) -> LedgerRow:
    facts: dict[str, Any] = {"irreversible": False, "key": "ab" * 32, "status": status}
    return LedgerRow(step=step, base=key(base), **(facts | more))


def make_fork(origin: int, run: int = 31) -> TimelineFork:
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


def test_a_closed_gate_names_who_counted_and_quotes_what_they_said() -> None:
    row = row_named(BACK, "Review")
    assert row.remarks == [Remark("by Bob, back to “Propose”:", "Only the second came back.")]
    assert row.took == "25 min"
    assert row_named(COMPLETED, "Review").remarks == [Remark("by Ann and Mira")]

    def closed(gate: TimelineGate) -> tuple[str, list[Remark]]:
        row = row_named(make_story(PAID, [1, 2, 3, 4, 5, 6], status="completed", gates=(gate,)), "Review")
        return row.mark.word, row.remarks

    lapsed = TimelineDecision("Ann", "approve", counts=False)
    edited = make_decided(3, "edited", lapsed, TimelineDecision("Mira", "edit"))
    assert closed(edited) == ("approved with an edit", [Remark("by Mira")])
    answered = make_decided(3, "answered", TimelineDecision("Ann", "answer"), answer="yes", answer_label="It happened")
    assert closed(answered) == ("answered", [Remark("“It happened” by Ann")])
    assert closed(make_decided(3, "expired"))[0] == "expired", "not rejected"
    gate = make_gate(3, quorum=2, decisions=(TimelineDecision("Mira", "approve"), lapsed))
    row = row_named(make_story(OPENING, [1, 2, 3], next_step="review", gates=(gate,)), "Review")
    assert row.remarks == [Remark("1 of 2 approved")]


def test_the_open_gate_carries_the_hold_line_and_a_link_for_whoever_may_open_it() -> None:
    row = row_named(HELD, "Review")
    assert (row.on_hold, row.since) == (True, NOON - timedelta(minutes=25))
    assert (row.link, row.target) == ("gate", 3)
    story = make_story(OPENING, [1, 2, 3], next_step="review", gates=(make_gate(3, visible=False),))
    assert row_named(story, "Review").link == ""


def test_failed_attempts_stand_in_the_row_of_their_step_whether_it_landed_ended_or_is_asked_about() -> None:
    failures = (make_failure(2, "propose", 1), make_failure(2, "propose", 2))
    story = make_story(OPENING, [1, 2, 3], next_step="review", gates=(make_gate(3),), failures=failures)
    assert [failure.attempt for failure in row_named(story, "Propose").failures] == [1, 2]
    assert not row_named(story, "Review").failures
    story = make_story(OPENING[:2], [1, 2], status="failed", next_step="propose", failures=failures)
    assert row_named(story, "Propose").failures == list(failures)
    gate = make_gate(2, step="propose", kind="recovery")
    row = row_named(make_story(OPENING[:2], [1, 2], next_step="propose", gates=(gate,), failures=failures), "Propose")
    assert (row.on_hold, len(row.failures)) == (True, 2)
    assert row.remarks == [Remark("asks how to go on after a fault")]


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
    assert [kind for kind, _, top, _ in gate.piece.lines if top == "25"] == ["back"]


def test_the_legend_explains_and_draws_every_mark_that_occurs_and_no_other() -> None:
    assert [sign.word for sign in timeline.build(COMPLETED).legend] == ["ran"]
    back = [sign.word for sign in timeline.build(BACK).legend]
    assert back == ["ran", "rejected", "on an abandoned branch", "rewind", "held", "not yet"]
    effects = (make_effect(4, "pay", "undone", landings=[UUID(int=5)]),)
    saved = [*REWOUND, make_saved(7, "propose", kind="reused", twin="3")]
    legend = timeline.build(make_story(saved, [1, 2, 6, 7], status="completed", effects=effects)).legend
    assert [sign.word for sign in legend] == ["ran", "reused", "undone", "on an abandoned branch", "rewind"]
    assert all('class="glyph"' in sign.svg for sign in legend if sign.word not in ("ran", "on an abandoned branch"))


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


def test_what_a_step_noted_is_quoted_and_what_the_runtime_notes_is_not() -> None:
    saved = [*OPENING[:2], make_saved(3, "propose", words=("Lenses were kept.",), attempt=2)]
    row = row_named(make_story(saved, [1, 2, 3], status="running", next_step="review"), "Propose")
    assert row.remarks == [Remark("at attempt 2"), Remark("", "Lenses were kept.")]
    reused = [*OPENING, make_saved(4, "propose", kind="reused", twin="3", words=("Same input and code.",))]
    row = row_at(make_story(reused, [1, 2, 3, 4], status="running", next_step="review"), 4)
    assert row.remarks == [Remark("Same input and code.")]


def test_an_answer_that_stands_is_no_reused_step_and_nothing_to_ask_is_no_answer() -> None:
    stood = make_saved(4, "review", kind="reused", twin="3", words=("Gate 7 was answered for exactly this.",))
    row = row_at(make_story([*OPENING, stood], [1, 2, 3, 4], status="running", next_step="pay"), 4)
    assert row.mark.word == "earlier approval reused"
    assert row.remarks == [Remark("given at 3"), Remark("Gate 7 was answered for exactly this.")]
    silent = make_saved(4, "review", kind="reused", twin="3")
    row = row_at(make_story([*OPENING, silent], [1, 2, 3, 4], status="running", next_step="pay"), 4)
    assert row.mark.word == "reused from 3"


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
    assert [kind for kind, _, top, _ in row.piece.lines if top == "25"] == ["back"]
    assert not row_at(story, 4).failures


def test_a_run_that_settles_its_effects_or_is_to_halt_says_so_and_what_comes_then() -> None:
    for ending, line in (
        ("completed", "then the run completes"), ("cancelled", "then the run is cancelled"),
        ("failed", "then the run fails"), ("", "then the run goes on with “Propose”"),
    ):  # fmt: skip
        story = make_story(OPENING[:2], [1, 2], status="running", next_step="propose", settling=True, ending=ending)
        assert (page_head.status(story.run).word, page_head.status_line(story, None)) == ("Settling its effects", line)
    settles = {"settling": True, "ending": "cancelled"}
    story = make_story(OPENING, [1, 2, 3], status="running", next_step="review", **settles)
    assert told(story)[3:] == [
        "- Settle: settling its effects", "- Review: did not run", "- Pay: did not run", "- Reply: did not run",
    ]  # fmt: skip
    story = make_story(OPENING[:2], [1, 2], status="running", next_step="propose", halt=True)
    assert "will stop after this step" in page_head.status_line(story, None)


def fate_of(status: str, **facts: Any) -> Fate:
    (fate,) = fates_of([make_effect(4, "pay", status, **facts)])
    return fate


@pytest.mark.parametrize(
    ("status", "facts", "word"),
    [
        ("done", {}, "done"),
        ("done", {"undo": "cancel_payment"}, "done, can be undone"),
        ("done", {"irreversible": True}, "done, cannot be undone"),
        ("done", {"undo": "cancel_payment", "unsettled": True}, "from an abandoned branch; will be undone"),
        ("done", {"irreversible": True, "unsettled": True}, "from an abandoned branch; cannot be undone"),
        ("done", {"unsettled": True}, "from an abandoned branch; kept"),
        ("done", {"undo": "x", "unsettled": True, "taken_from": 7}, "from an abandoned branch; kept"),
        ("undone", {"undo": "cancel_payment"}, "undone"),
        ("kept", {"undo": "cancel_payment"}, "kept"),
        ("kept", {"irreversible": True}, "kept, cannot be undone"),
        ("unknown", {}, "unknown: it may have happened"),
        ("intended", {}, "begun, result not recorded yet"),
        ("failed", {}, "failed, confirmed not executed"),
        ("abandoned", {}, "unknown, and ordered again"),
    ],
)
def test_an_effect_has_one_word(status: str, facts: dict[str, Any], word: str) -> None:
    assert fate_of(status, **facts).mark.word == word


def test_a_result_that_was_taken_over_says_where_and_one_that_is_ordered_again_says_so() -> None:
    first = make_effect(4, "pay", "undone", id=1, execution="pay/a/0", undo="cancel_payment")
    second = make_effect(7, "pay", "done", id=2, execution="pay/a/0", generation=1, undo="cancel_payment")
    old, new = fates_of([first, second], {"pay/a/0": [12, 15]})
    said = ["its result was reused at 12, 15", "performed again, generation 1"]
    assert ([remark.text for remark in old.remarks()], [remark.text for remark in new.remarks()]) == ([], said)
    assert "reused from R-7" in next(fate_of("done", taken_from=7).remarks()).text
    again = fate_of("done", undo="cancel_payment", unsettled=True, again=True)
    assert [remark.text for remark in again.remarks()] == ["will be performed again: a person sent the run back to it"]


def test_the_figures_count_each_effect_once() -> None:
    rows = [
        make_effect(4, "pay", "done", id=1),
        make_effect(4, "pay", "undone", id=2),
        make_effect(6, "pay", "done", id=3, undoes=2),
        make_effect(5, "reply", "done", id=4, irreversible=True),
        make_effect(5, "reply", "kept", id=5, irreversible=True),
        make_effect(5, "pay", "done", id=6, unsettled=True, undo="cancel_payment"),
        make_effect(5, "pay", "failed", id=7),
    ]
    cell = page_head.outside(rows)
    assert (cell.fact, cell.line) == ("5 effects", "1 done, 1 to be settled, 1 undone, 2 cannot be undone")


def test_an_undo_that_did_not_come_about_is_told_too() -> None:
    paid = make_effect(4, "pay", "done", id=1, undo="cancel_payment", unsettled=True)
    for status, said in (
        ("failed", "its undo failed, and nothing was undone:"), ("unknown", "the result of its undo is unknown"),
        ("intended", "its undo is running"),
    ):  # fmt: skip
        (fate,) = fates_of([paid, make_effect(6, "pay", status, id=2, undoes=1)])
        assert said in [remark.text for remark in fate.remarks()]


@pytest.mark.parametrize(
    ("rows", "lanes"),
    [
        ("", []),
        ("a", [0]),
        ("a, b a, c b", [0, 0, 0]),
        ("a, b a rejected, c b rejected, d a main c", [0, 1, 1, 0]),
        ("a, b a rejected, c a rejected b, d c rejected, e a main d", [0, 1, 2, 2, 0]),
        ("a, b a rejected, c a main b, d c rejected, e c main d", [0, 1, 0, 1, 0]),
        ("a, b a rejected, c b rejected, d b rejected c, e a main d", [0, 1, 1, 2, 0]),
        ("a, f a fork, g a fork, b a", [0, 1, 2, 0]),
        ("b above rejected, c a main b", [1, 0]),
    ],
    ids=["none", "one", "straight", "branch", "two side by side", "two in turn", "nested", "forks", "cut off above"],
)
def test_each_row_gets_the_first_lane_that_is_free(rows: str, lanes: list[int]) -> None:
    """A row: its key, its parent's, its kind, and the key of the row that was the head before a rewind to this one."""
    nodes = [LaneNode(*row.split()) for row in filter(None, rows.split(", "))]  # type: ignore[arg-type]
    assert [piece.lane for piece in lay_out(nodes)] == lanes
    assert count_lanes(lay_out(nodes)) == max(lanes, default=0) + 1
