"""Rows for tests, by plain functions: every call makes new ones, so that tests may commit and never meet."""

from .gates import (
    REJECTION,
    add_team,
    change_effects,
    change_gate,
    decide,
    edit_amount,
    make_action,
    make_card,
    make_gate,
    make_policy,
    make_question,
    repeatable,
    waiting,
)
from .people import MEMBER, READER, REVIEWER, ann, bob, eve, make_team, make_user, mira, unique
from .runs import make_plan, make_run, make_spec, make_state

__all__ = [
    "MEMBER", "READER", "REJECTION", "REVIEWER", "add_team", "ann", "bob", "change_effects", "change_gate", "decide",
    "edit_amount", "eve", "make_action", "make_card", "make_gate", "make_plan", "make_policy", "make_question",
    "make_run", "make_spec", "make_state", "make_team", "make_user", "mira", "repeatable", "unique", "waiting",
]  # fmt: skip
