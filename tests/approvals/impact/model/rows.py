"""What the model engine stores: checkpoints, effects, gates and runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

Output = tuple[Mapping[str, Any], str | None]
Method = Callable[..., Any]
SENT = ("input", "fork", "edit", "rewind")


@dataclass
class Point:
    """A checkpoint."""

    id: str
    parent: str
    run: int
    seq: int
    kind: str
    step: str
    next_step: str
    state: dict[str, Any]
    fields: dict[str, bytes]
    digest: bytes | None = None
    code: bytes = b""
    occurrence: int = 0
    writes: dict[str, Any] = field(default_factory=dict)


@dataclass
class Row:
    """An effect."""

    id: int
    run: int
    step: str
    digest: bytes
    occurrence: int
    generation: int
    irreversible: bool
    undo: str
    base: str
    result: Output = ((), None)  # type: ignore[assignment]
    status: str = "done"
    again: bool = False
    going: bool = False
    taken: bool = False
    shared: bool = False
    left_open: bool = False


@dataclass
class Grant:
    """A right that an outcome gave."""

    effect: str
    fields: dict[str, bytes]
    used_by: int = 0


@dataclass
class Gate:
    """A gate that asks, or a question about taking over."""

    id: int
    run: int
    seq: int
    step: str
    point: str
    digest: bytes
    body: bytes
    shown: dict[str, bytes]
    recovery: bool = False
    kind: str = "open"
    grants: list[Grant] = field(default_factory=list)
    execution: str = ""
    patch: dict[str, Any] = field(default_factory=dict)
    choice: str = ""


@dataclass
class Run:
    """A run's head, and its newest number."""

    id: int
    head: str
    seq: int
    fork: bool = False
    status: str = "queued"
