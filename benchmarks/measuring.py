"""Computes percentiles, and measures processes with their children, commits, and the times that workers pass on."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any
from unittest import mock

import psutil


def compute_percentile(values: Sequence[float], percent: float) -> float:
    """Compute the nearest-rank percentile."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, round(percent / 100 * (len(ordered) - 1)))]


def resident_megabytes(pid: int) -> float:
    """Return the proportional set size of a process and its children, so that shared pages count once."""
    parent = psutil.Process(pid)
    total: int = sum(part.memory_full_info().pss for part in [parent, *parent.children(recursive=True)])
    return total / 1e6


def processor_seconds(pid: int) -> float:
    """Return what a process and its children, ended ones included, have used of the processor, user and system."""
    parent, spent = psutil.Process(pid), []
    for part in (parent, *parent.children(recursive=True)):
        with suppress(psutil.NoSuchProcess):  # it has just ended, and is counted with its parent
            spent.append(part.cpu_times())
    return float(sum(part.user + part.system + part.children_user + part.children_system for part in spent))


@contextmanager
def record_commits() -> Iterator[list[int]]:
    """Record the times of this thread's commits: right after each, before anything that waits for it."""
    from django.db import connection

    moments: list[int] = []
    hooks = connection.run_and_clear_commit_hooks

    def marked() -> None:
        moments.append(time.monotonic_ns())
        hooks()

    with mock.patch.object(connection, "run_and_clear_commit_hooks", marked):
        yield moments


def wait_for_word(name: str, *, within: float = 60.0) -> str:
    """Wait for the next word that a worker passes on: in short waits, since a silent connection ends and loses it."""
    from benchmarks.agents import times_connection

    end = time.monotonic() + within
    while time.monotonic() < end:
        word: Any = times_connection().blpop([name], timeout=1)
        if word is not None:
            return str(word[1].decode())
    raise TimeoutError(f"no worker passed on {name}; is the worker alive?")
