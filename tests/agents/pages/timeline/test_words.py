"""Figures and events as a person reads them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from agents.pages.run.inspector import format_size
from agents.pages.run.marks import format_duration
from approvals.audit import event_words


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(-3, "< 1 ms"), (0.0072, "7 ms"), (0.0999, "0.1 s"), (0.4, "0.4 s"),
     (59.9, "59.9 s"), (60, "1 min"), (1298, "21 min 38 s"),
     (11_100, "3 h 5 min"), (180_000, "2 d 2 h")],
)  # fmt: skip
def test_a_duration_has_at_most_two_units(seconds: float, said: str) -> None:
    assert format_duration(timedelta(seconds=seconds)) == said


@pytest.mark.parametrize(("count", "said"), [(0, "0 B"), (999, "999 B"), (16_900, "16.9 kB"), (3_200_000, "3.2 MB")])
def test_a_size_is_decimal(count: int, said: str) -> None:
    assert format_size(count) == said


@pytest.mark.parametrize(
    ("kind", "data", "said"),
    [
        ("gate.decided", {"kind": "approve", "step": "review"}, "approved “Review”"),
        ("gate.decided", {"kind": "reject", "step": "review"}, "rejected “Review”"),
        ("gate.opened", {"kind": "review", "step": "review"}, "asks for a decision at “Review”"),
        ("gate.opened", {"kind": "recovery", "step": "pay"}, "asks how to go on at “Pay”"),
        ("step.failed", {"step": "propose", "attempt": 2}, "failed at “Propose”, attempt 2"),
        ("effect.done", {}, "performed "),
        (
            "retention.pruned",
            {"first": 2, "last": 9, "count": 5, "policy": "short"},
            "removed checkpoints 2 to 9, 5 in all, under the retention policy short",
        ),
        (
            "retention.pruned",
            {"first": 9, "last": 9, "count": 1, "policy": "short"},
            "removed checkpoint 9 under the retention policy short",
        ),
        ("retention.changed", {"agent": "refunds"}, "changed what is kept of the runs of refunds"),
        ("retention.changed", {"agent": ""}, "changed what is kept of every agent without a policy of its own"),
        ("retention.ordered", {"checkpoints": 3, "signals_and_waits": 0}, "ordered a prune; checkpoints that go: 3"),
        (
            "retention.ordered",
            {"checkpoints": 3, "signals_and_waits": 4},
            "ordered a prune; checkpoints that go: 3, signals and waits: 4",
        ),
        (
            "retention.finished",
            {"checkpoints": 0, "signals_and_waits": 4},
            "finished a prune; checkpoints removed: 0, signals and waits: 4",
        ),
        (
            "retention.stopped",
            {"checkpoints": 1, "signals_and_waits": 2},
            "stopped a prune; checkpoints removed by then: 1, signals and waits: 2",
        ),
        ("something.new", {"step": "{0.__class__}"}, ""),
        ("effect.done", {"step": "{0.__class__}"}, "performed “{0 class }”"),
    ],
)
def test_an_event_says_who_did_what(kind: str, data: dict[str, Any], said: str) -> None:
    told = event_words.tell(at=datetime(2026, 3, 2, tzinfo=UTC), kind=kind, who="Ann", data=data)
    assert (told.who, told.what) == ("Ann", said)
