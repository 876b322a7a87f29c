"""The campaign counts how runs went on after their workers had died."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from tests.chaos.faults.nemesis import lanes

from .counts import after_kills, takeovers, told


def events(*kinds: str) -> dict[str, list[dict[str, Any]]]:
    return {"events": [{"kind": kind, "run": 7, "at": 100.0 + n} for n, kind in enumerate(kinds)]}


def fault(name: str, at: float) -> list[dict[str, Any]]:
    times = (datetime.fromtimestamp(each, UTC).isoformat() for each in (at, at + 0.5))
    about = {"f": "fault", "fault": name, "op": at}
    return [{**about, "type": type, "time": time} for type, time in zip(("invoke", "ok"), times, strict=True)]


def test_a_claim_of_a_run_that_nobody_had_let_go_of_is_a_takeover() -> None:
    assert takeovers(events("run.running", "run.running", "run.waiting", "run.queued", "run.running")) == [101.0]
    assert takeovers(events("run.running", "run.halting", "gate.opened", "run.running")) == [103.0]


def test_a_takeover_is_counted_from_the_last_kill_before_it() -> None:
    history = [*fault("kill worker", 90.0), *fault("kill child", 99.0), *fault("kill worker", 102.0)]
    assert after_kills(history, events("run.running", "run.running")) == [2.0]


def test_a_takeover_counts_only_if_nothing_else_was_broken_that_runs_need() -> None:
    kill = fault("kill worker", 99.0)
    for name, at, found in (("stop postgres", 97.0, []), ("stop postgres", 80.0, [2.0]), ("kill web", 99.0, [2.0])):
        assert after_kills([*fault(name, at), *kill], events("run.running", "run.running")) == found, name


def test_it_says_how_many_took_longer_than_they_may_and_of_few_no_p99() -> None:
    rest = "most 6.0 s; 1 over lease + 2 s = 5 s"
    assert told([3.0] * 98 + [4.0, 6.0]) == f"100 times undisturbed: p50 3.0 s, p99 6.0 s, {rest}"
    assert told([3.0] * 98 + [6.0]) == f"99 times undisturbed: p50 3.0 s, {rest}"


def test_a_seed_gives_the_same_faults_and_another_one_others() -> None:
    assert lanes(11, 600, 1.5) == lanes(11, 600, 1.5)
    assert lanes(11, 600, 1.5) != lanes(12, 600, 1.5)
