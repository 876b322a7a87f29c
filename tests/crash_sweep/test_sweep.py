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
from itertools import cycle, product
from pathlib import Path
from unittest import mock

import pytest
from django.contrib.auth.models import User
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
from .people_flows import FLOWS, Flow

AGENTS = "agents.examples.refunds,tests.crash_sweep.validated_refunds"
SEED = int(os.environ.get("SWEEP_SEED", "1"))
ACTIONS = ("kill", "raise", "fail", "cut")  # `raise` passes every handler, `fail` is an exception like any other


@pytest.fixture(scope="module")
def outside(start_sandbox: Callable[..., World], tmp_path_factory: pytest.TempPathFactory) -> Outside:  # noqa: F811
    return Outside(start_sandbox(), tmp_path_factory.mktemp("home") / "mail")


@pytest.fixture(scope="module")
def user() -> User:
    return ann(make_team())


@pytest.fixture(scope="module")
def hand(outside: Outside) -> Iterator[Talking]:
    """The warm process; see .hand."""
    wishes = {
        "HOLDPOINT_AGENTS": AGENTS,
        "SANDBOX_URL": outside.world.url,
        "HOLDPOINT_HOME": str(outside.mails.parent),
        "HOLDPOINT_LOG_LEVEL": "ERROR",
    }
    process = Talking(sys.executable, "-m", "tests.crash_sweep.forked_turns", env=wishes)
    yield process
    process.close()


@pytest.fixture(scope="module", autouse=True)
def as_in_the_hand(outside: Outside) -> Iterator[None]:
    """This process takes turns too, once the crash has happened."""
    mail = {"EMAIL_BACKEND": "django.core.mail.backends.filebased.EmailBackend", "EMAIL_FILE_PATH": str(outside.mails)}
    world = {"HOLDPOINT_AGENTS": AGENTS.split(","), "SANDBOX_URL": outside.world.url}
    registry.forget()
    doors = mock.patch.object(doorbell, "ring", return_value=False)
    with override_settings(**mail, **world), doors, pacing.unpaced():
        yield
    registry.forget()


@pytest.fixture(scope="module")
def reached(
    hand: Talking, outside: Outside, user: User, tmp_path_factory: pytest.TempPathFactory
) -> dict[Flow, Counter[str]]:
    """How often each flow, undisturbed, passes each point."""
    found = {}
    for flow in FLOWS:
        case = Case(hand, outside, user, tmp_path_factory.mktemp("hits"))
        flow(case, random.Random(SEED))
        found[flow] = case.passed
    return found


@pytest.fixture(scope="module")
def shares(reached: dict[Flow, Counter[str]]) -> dict[Flow, list[str]]:
    """Each point once: of a flow that passes it, in the order in which that does."""
    shared: dict[Flow, list[str]] = {flow: [] for flow in FLOWS}
    for point in crash_points.POINTS:
        passing = [flow for flow in FLOWS if reached[flow][point]]
        assert passing, f"no flow reaches {point}"
        min((shared[flow] for flow in passing), key=len).append(point)
    return {flow: sorted(points, key=list(reached[flow]).index) for flow, points in shared.items()}


@pytest.mark.parametrize(
    ("flow", "actions"),
    [
        *(pytest.param(flow, ACTIONS[:1], id=f"{flow.__name__}-killed") for flow in FLOWS),
        *(pytest.param(flow, ACTIONS[1:], id=flow.__name__) for flow in FLOWS[::3]),
    ],
)
def test_crashed_at_one_point_after_another_one_refund_stands_for_each_approval(
    flow: Flow,
    actions: tuple[str, ...],
    hand: Talking,
    outside: Outside,
    user: User,
    shares: dict[Flow, list[str]],
    tmp_path: Path,
) -> None:
    points = shares[flow][:: min(len(actions), 2)]
    wishes = [f"{point}:{action}:1" for point, action in zip(points, cycle(actions), strict=False)]
    case = Case(hand, outside, user, tmp_path, *wishes)
    flow(case, random.Random(f"{SEED} {flow.__name__} {actions}"))
    assert not case.wish, f"{case.wish} was never reached"
    assert verify_runs.verify_run(case.run) == []


@pytest.mark.long
@pytest.mark.parametrize(("point", "action", "hit"), [*product(crash_points.POINTS, ACTIONS, (1, 2))])
def test_whatever_crashes_one_refund_stands_for_each_approval(
    point: str,
    action: str,
    hit: int,
    hand: Talking,
    outside: Outside,
    user: User,
    reached: dict[Flow, Counter[str]],
    tmp_path: Path,
) -> None:
    flows = [flow for flow in FLOWS if reached[flow][point] >= hit]
    assert flows, f"no flow reaches {point} {hit} times"
    rng = random.Random(f"{SEED} {point} {action} {hit}")
    case = Case(hand, outside, user, tmp_path, f"{point}:{action}:{hit}")
    flow = rng.choice(flows)
    flow(case, rng)
    assert not case.wish, f"{flow.__name__} never reached {point} {hit} times"
    assert verify_runs.verify_run(case.run) == []


@pytest.mark.parametrize("those", ["of each day", pytest.param("of all", marks=pytest.mark.long)])
def test_the_audit_verifies_after_all_of_that(those: str) -> None:
    while sealer.seal_once() is not None:
        pass
    assert list(database.verify()) == []
