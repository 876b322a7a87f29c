"""The rules of which gate decides about an effect, what it refused, and where a run still waits for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

import pytest

from approvals.cards.action import Action, SettledAction
from approvals.engine_rules import effects, permissions
from checkpoints.runs.plans import PlanSpec, StepSpec

ONE = StepSpec("pay", kind="effect", guarded=True)
SEVERAL = StepSpec("pay", kind="effect", guarded=True, action="now")
PLAN = PlanSpec("robo", "1", steps=(StepSpec("review", kind="gate", allows=("pay",)), ONE))
NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
NO = SettledAction(verdict="reject", by="Ann")
CARD = [
    Action(id="x", title="X", effect="mail"),
    Action(id="a", title="A", effect="pay"),
    Action(id="b", title="B", effect="pay", settled=NO),
]
LATER = NOON + timedelta(hours=1)
BESIDE = replace(PLAN, steps=(*PLAN.steps, StepSpec("legal", kind="gate", allows=("pay",), waits=False)))
ASKED, OTHER, RAN = ("recovery", "pay"), ("recovery", "reply"), ("step", "pay")


class Asked(NamedTuple):
    step: str
    recovery: bool = False
    lets_run: bool = False
    actions: tuple[str, ...] = ()
    kind: str = "approved"
    refusing: Sequence[Action] = ()
    opened_at: datetime = NOON
    closed_at: datetime | None = NOON


REVIEW, ABOUT_A = Asked("review"), Asked("pay", recovery=True, lets_run=True, actions=("a",))


@pytest.mark.parametrize(
    ("closed", "effect", "now", "found"),
    [
        ([REVIEW, ABOUT_A], ONE, "", REVIEW),
        ([ABOUT_A, REVIEW], ONE, "", ABOUT_A),
        ([Asked("other", lets_run=True), REVIEW], ONE, "", REVIEW),
        ([Asked("pay", recovery=True), REVIEW], ONE, "", REVIEW),  # an answer that lets nothing run says nothing
        ([ABOUT_A, REVIEW], SEVERAL, "a", ABOUT_A),
        ([ABOUT_A, REVIEW], SEVERAL, "b", REVIEW),
        ([ABOUT_A, REVIEW], SEVERAL, None, REVIEW),
        ([ABOUT_A], SEVERAL, "b", None),
    ],
)
def test_the_newest_gate_that_could_allow_the_effect_decides(
    closed: list[Asked], effect: StepSpec, now: str | None, found: Asked | None
) -> None:
    assert permissions.last_allowing(closed, PLAN, effect, now=now) is found


@pytest.mark.parametrize(
    ("kind", "effect", "now", "found"),
    [
        ("mixed", SEVERAL, "b", "b"),
        ("mixed", SEVERAL, "a", None),
        ("mixed", SEVERAL, "", None),
        ("mixed", ONE, "", None),  # its action is the first
        ("rejected", SEVERAL, "b", None),  # nothing runs, so that none is passed by
    ],
)
def test_only_a_decision_by_action_refuses_one_while_the_run_goes_on(
    kind: str, effect: StepSpec, now: str, found: str | None
) -> None:
    refused = permissions.refused_action(kind, CARD, effect, now=now)
    assert (refused.id if refused else None) == found


REFUSED = Asked("review", lets_run=True, kind="mixed", refusing=[CARD[2]], closed_at=LATER)
LAST = Asked("legal", lets_run=True, opened_at=NOON, closed_at=LATER)


@pytest.mark.parametrize(
    ("plan", "before", "now", "found"),
    [
        (BESIDE, REFUSED, "b", REFUSED),
        (BESIDE, REFUSED, None, REFUSED),  # the action is not known: it may be the refused one
        (BESIDE, REFUSED, "a", LAST),
        (BESIDE, REFUSED._replace(closed_at=None), "b", REFUSED._replace(closed_at=None)),
        (BESIDE, REFUSED._replace(closed_at=NOON), "b", LAST),  # it was closed when the other opened
        (BESIDE, Asked("review", closed_at=LATER), "a", Asked("review", closed_at=LATER)),  # its answer allows nothing
        (PLAN, REFUSED, "b", None),
    ],
)
def test_of_gates_open_side_by_side_the_one_that_refuses_decides(
    plan: PlanSpec, before: Asked, now: str | None, found: Asked | None
) -> None:
    last = LAST if plan is BESIDE else REVIEW
    assert permissions.last_allowing([last, before], plan, SEVERAL, now=now) == (found or REVIEW)


@pytest.mark.parametrize(
    ("since", "awaited"),
    [([], True), ([ASKED, ASKED], True), ([ASKED, RAN], False), ([OTHER], False), (None, False)],
)
def test_a_run_waits_where_it_only_asked_about_the_effect_since(
    since: list[tuple[str, str]] | None, awaited: bool
) -> None:
    assert effects.awaited("pay", since) is awaited


def test_only_what_is_kept_without_being_known_is_left_open() -> None:
    assert effects.left_open("kept", known=False)
    assert not effects.left_open("kept", known=True)
    assert not effects.left_open("unknown", known=False)
