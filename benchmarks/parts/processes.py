"""Measures processes together with their children: resident memory, and processor time spent."""

from __future__ import annotations

from contextlib import suppress

import psutil


def resident(pid: int) -> float:
    """Return the proportional set size in MB, so that shared pages count once."""
    parent = psutil.Process(pid)
    total: int = sum(each.memory_full_info().pss for each in [parent, *parent.children(recursive=True)])
    return total / 1e6


def processor(pid: int) -> float:
    """Return the processor seconds, user and system, of the process and its children, ended ones included."""
    parent, spent = psutil.Process(pid), []
    for each in (parent, *parent.children(recursive=True)):
        with suppress(psutil.NoSuchProcess):  # it has just ended, and is counted with its parent
            spent.append(each.cpu_times())
    return float(sum(each.user + each.system + each.children_user + each.children_system for each in spent))
