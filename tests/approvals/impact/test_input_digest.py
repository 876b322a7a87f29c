"""The input digest: one formula, for whoever runs a step and for whoever foretells whether it will run."""

from __future__ import annotations

from checkpoints.runs.plans import StepSpec, input_digest
from checkpoints.values import digests
from checkpoints.values.digests import StretchDigest

FIELDS = {
    "order": digests.of_value({"n": 1}),
    "feedback": StretchDigest.empty().appended(["no"]),
    "other": digests.of_value(2),
}


def test_it_covers_the_step_and_the_fields_that_it_reads() -> None:
    step = StepSpec("propose", reads=("order", "feedback", "nobody_wrote"))
    read = {"order": FIELDS["order"].hex(), "feedback": FIELDS["feedback"].hex()}
    assert input_digest(step, FIELDS) == digests.of_value(["step input", "propose", read])
    assert input_digest(step, {**FIELDS, "other": digests.of_value(3)}) == input_digest(step, FIELDS)


def test_configuration_counts_only_where_the_step_names_it() -> None:
    plain, asks = StepSpec("a", reads=("order",)), StepSpec("a", reads=("order",), config=("limit",))
    assert input_digest(plain, FIELDS, {"limit": 1}) == input_digest(plain, FIELDS, {"limit": 2})
    assert input_digest(asks, FIELDS, {"limit": 1}) != input_digest(asks, FIELDS, {"limit": 2})
    assert input_digest(asks, FIELDS, {"limit": 1, "x": 1}) == input_digest(asks, FIELDS, {"limit": 1, "x": 2})


def test_a_step_that_takes_the_whole_configuration_is_touched_by_all_of_it() -> None:
    whole = StepSpec("a", config=("*",))
    assert input_digest(whole, FIELDS, {"limit": 1, "x": 1}) != input_digest(whole, FIELDS, {"limit": 1, "x": 2})
