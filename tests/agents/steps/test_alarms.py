"""Alarms are held back inside a block, and never for longer."""

from __future__ import annotations

import signal
from collections.abc import Iterable

import pytest

from agents.errors import StepTimeout
from agents.steps import alarms


def test_an_alarm_that_rings_as_it_is_blocked_does_not_stay_blocked(monkeypatch: pytest.MonkeyPatch) -> None:
    """The interpreter handles a signal that came before inside the very call that blocks it, after the mask is set."""
    real = signal.pthread_sigmask

    def blocking(how: int, mask: Iterable[int]) -> set[int]:
        before = real(how, mask)
        if how == signal.SIG_BLOCK and signal.SIGALRM in mask:
            raise alarms.timed_out(1)
        return before

    monkeypatch.setattr(signal, "pthread_sigmask", blocking)
    try:
        with pytest.raises(StepTimeout), alarms.unalarmed():
            raise AssertionError("the block was entered")
        assert signal.SIGALRM not in real(signal.SIG_BLOCK, ())
    finally:
        real(signal.SIG_UNBLOCK, {signal.SIGALRM})


def test_it_is_blocked_inside_and_not_after() -> None:
    with alarms.unalarmed():
        assert signal.SIGALRM in signal.pthread_sigmask(signal.SIG_BLOCK, ())
    assert signal.SIGALRM not in signal.pthread_sigmask(signal.SIG_BLOCK, ())
