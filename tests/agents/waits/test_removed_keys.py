"""The key of a signal that retention has removed is still known: it is no new signal, and no other one."""

from __future__ import annotations

import pytest

from agents.models import Signal
from agents.waits import signals
from agents.work_errors import RunEnded, SignalRemoved
from checkpoints import actors
from tests.checkpoints.retention.conftest import no_policies as no_policies
from tests.checkpoints.retention.pruned_runs import keep, pruned
from tests.factories.driven_runs import advance_to_rest, make_run


@pytest.mark.parametrize("key", ["key-1", 'a"b\\c', '"name":"health"'])
def test_a_key_of_any_characters_is_known_after_its_signal_is_removed(key: str) -> None:
    run = make_run("relay")
    for other in ("before", key, "after"):
        signals.send(run, "health", {"percent": 10}, key=other, by=actors.SYSTEM)
    assert advance_to_rest(run).status == "completed"
    keep(run, keep_last=1)
    pruned()
    assert not Signal.objects.filter(run=run).exists()
    assert not signals.send(run, "health", {"percent": 10}, key=key, by=actors.SYSTEM)[1]
    with pytest.raises(RunEnded):
        signals.send(run, "health", {"percent": 10}, key=f"{key}x", by=actors.SYSTEM)


def test_a_secret_that_was_removed_is_not_taken_for_another_one() -> None:
    """Its event has no digest, so any other secret counted as the same, and was dropped without a word."""
    run = make_run("locked")
    signals.send(run, "code", {"by": "Ann", "pin": "1234"}, key="k", by=actors.SYSTEM)
    assert advance_to_rest(run).status == "completed"
    keep(run, keep_last=1)
    pruned()
    assert not Signal.objects.filter(run=run).exists()
    with pytest.raises(SignalRemoved):
        signals.send(run, "code", {"by": "Ann", "pin": "5678"}, key="k", by=actors.SYSTEM)
