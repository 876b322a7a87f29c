"""The checker finds each kind of violation that is planted into a good history, and nothing in the good one."""

from __future__ import annotations

import pytest

from .checker import CHECKS, violations
from .good_history import good
from .planted import FAULTLESS, RESTING, VIOLATIONS, Plant
from .rest_checks import not_at_rest

PLANTED = [pytest.param(kind, plant, id=name) for kind, plants in VIOLATIONS.items() for name, plant in plants.items()]


@pytest.mark.parametrize(("kind", "plant"), PLANTED)
def test_what_is_planted_is_found(kind: str, plant: Plant) -> None:
    seen = good()
    plant(seen)
    assert kind in seen.found()


def test_each_check_finds_something_that_is_planted() -> None:
    idle = {check.__name__ for check in CHECKS}
    for plants in VIOLATIONS.values():
        for plant in plants.values():
            seen = good()
            plant(seen)
            idle -= {check.__name__ for check in CHECKS if list(check(*seen))}
    assert idle == set()


@pytest.mark.parametrize("plant", FAULTLESS.values(), ids=FAULTLESS)
def test_nothing_is_found_where_nothing_is_wrong(plant: Plant) -> None:
    seen = good()
    plant(seen)
    assert violations(*seen) == []


@pytest.mark.parametrize("plant", RESTING.values(), ids=RESTING)
def test_a_run_that_waits_for_what_will_come_is_at_rest(plant: Plant) -> None:
    seen = good()
    plant(seen)
    assert not_at_rest(seen.dump) == []


def test_what_the_verification_says_is_a_violation() -> None:
    assert good().found(audit="checkpoint 7/5 does not match its digest") == {"audit"}
