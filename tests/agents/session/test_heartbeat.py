"""The heartbeat's thread is woken for a claim only where it would look too late."""

from __future__ import annotations

import os
import time
from datetime import UTC, datetime

import pytest

from agents.session.heartbeat import HALT_EVERY, ClaimBeat, HeartbeatThread
from checkpoints.store.claims import Claim
from tests.harness.waiting import until


def claim(lease: float = 30.0) -> Claim:
    return Claim(1, 1, lease, None, 0, "", 1, datetime.now(UTC))


@pytest.mark.parametrize(
    ("sleeps", "lease", "woken"), [(HALT_EVERY / 2, 30.0, 0), (HALT_EVERY / 2, 0.03, 1), (float("inf"), 30.0, 1)]
)
def test_a_thread_that_looks_in_time_is_not_woken(
    monkeypatch: pytest.MonkeyPatch, sleeps: float, lease: float, woken: int
) -> None:
    heart, rung = HeartbeatThread(), []
    heart.pid, heart.wakes = os.getpid(), time.monotonic() + sleeps
    monkeypatch.setattr(heart.changed, "notify", lambda: rung.append(True))
    with heart.watch(claim(lease)):
        pass
    assert len(rung) == woken


def test_a_claim_that_came_while_the_thread_slept_for_another_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[ClaimBeat] = []

    def look(beat: ClaimBeat) -> None:
        looked.append(beat)
        beat.asked = time.monotonic()

    monkeypatch.setattr(ClaimBeat, "look", look)
    heart = HeartbeatThread()
    with heart.watch(claim()):
        until(lambda: heart.wakes < float("inf"), what="the thread sleeps for this claim")
    with heart.watch(claim()) as beat:
        until(lambda: looked)
    assert looked == [beat]
