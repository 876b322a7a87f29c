"""Faults on request: which of the next requests go wrong, and how."""

from __future__ import annotations

import threading
from dataclasses import asdict, dataclass
from typing import Any

from .bank import Refused

PLACES = ("charges", "refunds", "cancel", "orders", "prices", "withdraw", "reads")
KINDS = ("500", "500_after", "timeout", "cut_after", "cut_before", "slow")
LONGEST = 120.0  # seconds


@dataclass
class Fault:
    on: str
    kind: str
    times: int  # how many requests it still meets
    match: str  # an idempotency key or an amount; empty: any request
    seconds: float  # how long `timeout` is silent and `slow` takes


class Faults:
    """The faults that wait. Safe for threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: list[Fault] = []

    def add(self, asked: dict[str, Any]) -> list[dict[str, Any]]:
        """Add a fault; return those that wait. Raises Refused for one that there is not."""
        fault = Fault(
            on=str(asked.get("on", "")),
            kind=str(asked.get("kind", "")),
            times=asked.get("times", 1),
            match=str(asked.get("match") or ""),
            seconds=asked.get("seconds", 30.0),
        )
        if fault.on not in PLACES or fault.kind not in KINDS:
            raise Refused(422, f"on is one of {', '.join(PLACES)}; kind is one of {', '.join(KINDS)}")
        if not isinstance(fault.times, int) or not 1 <= fault.times <= 10_000:
            raise Refused(422, "times is a whole number from 1 to 10000")
        if not isinstance(fault.seconds, int | float) or not 0 <= fault.seconds <= LONGEST:
            raise Refused(422, f"seconds is a number from 0 to {LONGEST:.0f}")
        with self._lock:
            self._waiting.append(fault)
        return self.waiting()

    def take(self, on: str, *values: str) -> Fault | None:
        """Return the fault that meets this request, counted down; `values` are its key and amount."""
        with self._lock:
            for fault in self._waiting:
                if fault.on == on and (not fault.match or fault.match in values):
                    fault.times -= 1
                    self._waiting = [waiting for waiting in self._waiting if waiting.times]
                    return fault
        return None

    def clear(self) -> list[dict[str, Any]]:
        with self._lock:
            self._waiting = []
        return []

    def waiting(self) -> list[dict[str, Any]]:
        with self._lock:
            return [asdict(fault) for fault in self._waiting]
