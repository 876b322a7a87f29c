"""Alarms: each raises StepTimeout in the code that runs past its limit, as far as its worker's pool allows.

- In the main thread (the pools prefork and solo) the system's alarm interrupts also what waits in the system.
- In another thread (the pool threads) the interpreter raises it when the thread next runs Python code. A call that
  waits in the system returns first.

Where an alarm cannot reach a step, the heartbeat gives its run up (agents.session.heartbeat).
"""

from __future__ import annotations

import ctypes
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, Protocol

from agents.errors import StepTimeout

_own = threading.local()


class Alarm(Protocol):
    """An alarm of the thread that made it."""

    held: bool  # back, for as long as this is True

    def arm(self) -> None:
        """Let the alarm ring from now on."""

    def disarm(self) -> None:
        """Let nothing be raised any more. May be called again."""

    def hold(self) -> None:
        """Raise nothing until `held` is False again."""

    def ring(self) -> None:
        """Raise StepTimeout in the thread, unless the alarm is held back; it is called again every second."""


class SignalAlarm:
    """The system's alarm, which rings by itself: for the main thread."""

    held = False  # the mask of signals says so

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.armed = False
        self.before: Any = None

    def arm(self) -> None:
        """Set the timer."""
        self.armed = True
        self.before = signal.signal(signal.SIGALRM, self._rang)
        signal.setitimer(signal.ITIMER_REAL, self.seconds, 1.0)

    def disarm(self) -> None:
        """Stop the timer."""
        self.armed = False
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, self.before)

    def hold(self) -> None:
        """Do nothing: `unalarmed` masks the signal."""

    def ring(self) -> None:
        """Do nothing: the timer rings."""

    def _rang(self, number: int, frame: FrameType | None) -> None:
        if self.armed:
            raise timed_out(self.seconds)


class ThreadAlarm:
    """An alarm for any other thread, rung by the heartbeat's."""

    def __init__(self, seconds: float) -> None:
        self.thread = threading.get_ident()
        message = timed_out(seconds).args
        # The interpreter makes the exception itself, from a class.
        self.error = type(
            "StepTimeout", (StepTimeout,), {"__init__": lambda this: BaseException.__init__(this, *message)}
        )
        self.armed = False
        self.held = False
        self.ringing = threading.Lock()

    def arm(self) -> None:
        """Let the heartbeat's rings through."""
        self.armed = True

    def disarm(self) -> None:
        """Let none through, and take back one that this thread has not met yet."""
        self.armed = False
        self._take_back()

    def hold(self) -> None:
        """Let none through for now. One that is taken back here rings again in a second."""
        self.held = True
        self._take_back()

    def ring(self) -> None:
        """Raise StepTimeout where the thread next runs Python code."""
        with self.ringing:
            if self.armed and not self.held:
                _raise_in(self.thread, self.error)

    def _take_back(self) -> None:
        with self.ringing:
            _raise_in(self.thread, None)


@contextmanager
def armed(alarm: Alarm) -> Iterator[None]:
    """Arm an alarm of this thread inside the block."""
    _own.alarm = alarm
    try:
        alarm.arm()
        yield
    finally:
        while True:  # it may ring in these lines still
            try:
                alarm.disarm()
                _own.alarm = None
                break
            except StepTimeout:
                continue


@contextmanager
def unalarmed() -> Iterator[None]:
    """Hold the alarm back inside the block: an exception amid a database query would cost the connection."""
    own: Alarm | None = getattr(_own, "alarm", None)
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    held = own is not None and own.held
    try:
        signal.pthread_sigmask(
            signal.SIG_BLOCK, {signal.SIGALRM}
        )  # raises, once it is blocked, for one that rang before
        if own is not None:
            own.hold()
        yield
    finally:
        if own is not None:
            own.held = held
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def timed_out(seconds: float) -> StepTimeout:
    """Make the error of a step that ran past `seconds`."""
    return StepTimeout(f"The step ran past its time limit of {seconds:g} s.")


def made(seconds: float) -> Alarm:
    """Make the alarm that fits the thread that calls."""
    return (SignalAlarm if threading.current_thread() is threading.main_thread() else ThreadAlarm)(seconds)


def _raise_in(thread: int, error: type[StepTimeout] | None) -> None:
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(error) if error else None)
