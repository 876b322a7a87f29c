"""Plans are data: stored once, read back as they were, and asked for their steps by name."""

from __future__ import annotations

import secrets
from dataclasses import replace

from django.db import transaction

from checkpoints.runs import plans
from checkpoints.runs.plans import PlanSpec, StepSpec
from checkpoints.values.canonical_json import decode_canonical
from tests.harness.racing_threads import meet_lock


def make_spec() -> PlanSpec:
    steps = (
        StepSpec("propose", reads=("ticket",), writes=("proposal",), code_hash="ab", timeout=2.5, retry=3),
        StepSpec("review", kind="gate", allows=("pay",), edits=("proposal",), on_reject="propose", policy="refunds"),
        StepSpec("pay", kind="effect", guarded=True, undo="cancel_payment"),
    )
    return PlanSpec(f"robo-{secrets.token_hex(6)}", "1", "Pays.", {"type": "object"}, steps)


def test_a_plan_is_stored_once_and_read_back_as_it_was_and_other_code_is_another_row() -> None:
    spec = make_spec()
    plan = plans.keep(spec)
    assert plans.keep(spec).pk == plan.pk
    assert plans.spec_of(plan) == spec
    changed = replace(spec, steps=(replace(spec.steps[0], code_hash="cd"), *spec.steps[1:]))
    assert plans.keep(changed).pk != plan.pk
    assert StepSpec.from_json({"name": "one", "reads": ["a"], "later": 1}) == StepSpec("one", reads=("a",))


def test_two_that_insert_the_same_plans_in_opposite_order_do_not_deadlock() -> None:
    one, other = make_spec(), make_spec()

    def opposite() -> list[int]:
        with transaction.atomic():
            return [plans.keep(other).pk, plans.keep(one).pk]

    found = meet_lock(lambda: plans.keep(one), opposite, then=lambda: plans.keep(other))
    assert found == [plans.keep(other).pk, plans.keep(one).pk]


def test_steps_follow_each_other_or_name_the_next_and_have_titles_or_names_in_words() -> None:
    titled = PlanSpec("robo", "1", steps=(StepSpec("ask_facts"), StepSpec("pay", title="Pay the refund")))
    assert [step.title for step in titled.steps] == ["Ask facts", "Pay the refund"]
    assert [titled.title_of(name) for name in ("pay", "no_step_of_it")] == ["Pay the refund", "No step of it"]
    spec = make_spec()
    assert [spec.next_after(step.name) for step in spec.steps] == ["review", "pay", ""]
    # A plan that is stored already stays the same.
    assert all({"title", "then"}.isdisjoint(step) for step in spec.to_json()["steps"])
    round_trip = replace(spec, steps=(*spec.steps[:2], replace(spec.steps[2], then="propose")))
    assert round_trip.next_after("pay") == "propose"
    assert round_trip.reachable("pay") == {"propose", "review", "pay"}
    assert plans.spec_of(plans.keep(round_trip)) == round_trip


def test_another_title_is_the_same_plan_by_its_newest_title_and_another_row_elsewhere() -> None:
    """Naming a step for people stopped every run of the version that was under way."""
    spec = make_spec()
    first = plans.keep(spec)
    titled = replace(spec, steps=(*spec.steps[:2], replace(spec.steps[2], title="Pay the refund")))
    assert plans.keep(titled).pk == first.pk
    first.refresh_from_db()
    assert plans.spec_of(first) == titled
    # Its row is shared by teams: whoever sends the same plan must not give their steps other titles.
    first = plans.keep(spec, external=True)
    titled = replace(spec, steps=(*spec.steps[:2], replace(spec.steps[2], title="Send a card")))
    assert plans.keep(titled, external=True).pk != first.pk
    first.refresh_from_db()
    assert PlanSpec.from_json(decode_canonical(bytes(first.body))) == spec
    assert [step.title for step in plans.spec_of(first).steps] == [step.name for step in spec.steps], "ours"
