"""kill -9, an exception and a lost connection at every named point, over runs with rewinds.

By default each flow crashes at one of its points after another; `make test-long` crashes each point in each way, at its
first and its second hit, in a run of its own.
`SWEEP_SEED=7 pytest -n2 tests/crash_sweep` runs it with other amounts, mails and flows.
"""

from __future__ import annotations

import os
import random
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import chain, cycle, product
from unittest import mock

import pytest
from django.test import override_settings

from agents.definition import registry
from agents.ringing import doorbell
from approvals.policy import pacing
from checkpoints import crash_points
from checkpoints.audit import database, sealer, verify_runs
from tests.agents.examples.refunds.conftest import World, start_sandbox  # noqa: F401 - a fixture
from tests.factories import ann, make_team
from tests.harness.services import Talking

from .crashed_run import Case
from .outside_world import Outside
from .people_flows import FLOWS, Flow, paid_again

Cases = Callable[..., Case]
AGENTS = "agents.examples.refunds,tests.crash_sweep.validated_refunds"
SEED = int(os.environ.get("SWEEP_SEED", "1"))
ACTIONS = ("kill", "raise", "fail", "cut")  # `raise` passes every handler, `fail` is an exception like any other


@pytest.fixture(scope="module")
def new_case(
    start_sandbox: Callable[..., World],  # noqa: F811
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Cases]:
    """Return new_case(*wishes) -> Case. This process takes turns as the forked ones do, once the crash has happened."""
    outside = Outside(start_sandbox(), tmp_path_factory.mktemp("home") / "mail")
    world = {"HOLDPOINT_HOME": str(outside.mails.parent), "SANDBOX_URL": outside.world.url}
    env = {**world, "HOLDPOINT_AGENTS": AGENTS, "HOLDPOINT_LOG_LEVEL": "ERROR"}
    hand, user = Talking(sys.executable, "-m", "tests.crash_sweep.forked_turns", env=env), ann(make_team())
    mail = {"EMAIL_BACKEND": "django.core.mail.backends.filebased.EmailBackend", "EMAIL_FILE_PATH": str(outside.mails)}
    own = {"HOLDPOINT_AGENTS": AGENTS.split(","), "SANDBOX_URL": outside.world.url}
    registry.forget()
    doors = mock.patch.object(doorbell, "ring", return_value=False)
    with override_settings(**mail, **own), doors, pacing.unpaced():
        yield lambda *wishes: Case(hand, outside, user, tmp_path_factory.mktemp("hits"), *wishes)
    registry.forget()
    hand.close()


def test_each_point_is_crashed_at_in_some_flow() -> None:
    assert sorted(chain(*FLOWS.values())) == sorted(crash_points.POINTS)


@pytest.mark.parametrize(
    ("flow", "actions"),
    [
        *(pytest.param(flow, ACTIONS[:1], id=f"{flow.__name__}-killed") for flow in FLOWS),
        pytest.param(paid_again, ACTIONS[1:], id="paid_again"),
    ],
)
def test_crashed_at_one_point_after_another_one_refund_stands_for_each_approval(
    flow: Flow, actions: tuple[str, ...], new_case: Cases
) -> None:
    case = new_case(*(f"{point}:{action}:1" for point, action in zip(FLOWS[flow], cycle(actions), strict=False)))
    flow(case, random.Random(f"{SEED} {flow.__name__} {actions}"))
    assert not case.wish, f"{case.wish} was never reached"
    assert verify_runs.verify_run(case.run) == []


@pytest.fixture(scope="module")
def reached(new_case: Cases) -> dict[Flow, Counter[str]]:
    """How often each flow, undisturbed, passes each point."""
    found = {}
    for flow in FLOWS:
        case = new_case()
        flow(case, random.Random(SEED))
        found[flow] = case.passed
    return found


@pytest.mark.long
@pytest.mark.parametrize(("point", "action", "hit"), [*product(crash_points.POINTS, ACTIONS, (1, 2))])
def test_whatever_crashes_one_refund_stands_for_each_approval(
    point: str, action: str, hit: int, new_case: Cases, reached: dict[Flow, Counter[str]]
) -> None:
    flows = [flow for flow in FLOWS if reached[flow][point] >= hit]
    assert flows, f"no flow reaches {point} {hit} times"
    rng = random.Random(f"{SEED} {point} {action} {hit}")
    case = new_case(f"{point}:{action}:{hit}")
    flow = rng.choice(flows)
    flow(case, rng)
    assert not case.wish, f"{flow.__name__} never reached {point} {hit} times"
    assert verify_runs.verify_run(case.run) == []


@pytest.mark.parametrize("those", ["of each day", pytest.param("of all", marks=pytest.mark.long)])
def test_the_audit_verifies_after_all_of_that(those: str) -> None:
    while sealer.seal_once() is not None:
        pass
    assert list(database.verify()) == []
