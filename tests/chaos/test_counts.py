"""The campaign counts how runs went on after their workers had died."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from .campaign import after_kills, takeovers


def events(*kinds: str) -> dict[str, list[dict[str, Any]]]:
    """One event a second of run 7, from second 100 on."""
    return {"events": [{"kind": kind, "run": 7, "at": 100.0 + n} for n, kind in enumerate(kinds)]}


def fault(name: str, at: float) -> dict[str, Any]:
    """A fault that began at that second."""
    return {"f": "fault", "type": "invoke", "fault": name, "time": datetime.fromtimestamp(at, UTC).isoformat()}


def test_a_claim_of_a_run_that_nobody_had_let_go_of_is_a_takeover() -> None:
    assert takeovers(events("run.running", "run.running", "run.waiting", "run.queued", "run.running")) == [101.0]


def test_what_tells_of_a_running_run_is_no_release() -> None:
    assert takeovers(events("run.running", "run.halting", "gate.opened", "run.running")) == [103.0]


def test_a_takeover_is_counted_from_the_last_kill_before_it() -> None:
    history = [fault("kill worker", 90.0), fault("kill child", 99.0), fault("kill worker", 102.0)]
    assert after_kills(history, events("run.running", "run.running")) == "p50 2.0 s, p99 2.0 s, most 2.0 s"


def test_where_more_was_broken_than_workers_it_says_nothing() -> None:
    assert after_kills([fault("stop postgres", 99.0)], events("run.running", "run.running")) == ""
