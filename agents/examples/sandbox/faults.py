"""Faults on request: chooses the next requests that fail, and the way in which they do."""

from __future__ import annotations

import threading
from typing import Any, Literal

from pydantic import BaseModel, Field, ValidationError

from .bank import RequestRefused


class Fault(BaseModel):
    on: Literal["charges", "refunds", "cancel", "orders", "prices", "releases", "withdraw", "reads"]
    kind: Literal["500", "500_after", "timeout", "cut_after", "cut_before", "slow"]
    times: int = Field(default=1, ge=1, le=10_000)  # how many requests it still meets
    match: str = ""  # an idempotency key or an amount; empty: any request
    seconds: float = Field(default=30.0, ge=0, le=120)  # how long `timeout` is silent and `slow` takes


class Faults:
    """The faults that wait. Safe for threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: list[Fault] = []

    def add(self, asked: dict[str, Any]) -> list[dict[str, Any]]:
        """Add a fault; return those that wait. Raises RequestRefused for one that there is not."""
        try:
            fault = Fault.model_validate(asked)
        except ValidationError as error:
            wrong = [f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in error.errors()]
            raise RequestRefused(422, "; ".join(wrong)) from error
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
            return [fault.model_dump() for fault in self._waiting]
