"""The shop floor's board: a folder with one file for each schedule that is published, named by its key.

A file is there whole or not at all, so that a reader of the board never sees half a schedule; publishing under a key
again writes the same, and withdrawing removes the file and may be repeated.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

from django.conf import settings

from agents import EffectFailed

from .state import Published, Schedule


def board() -> Path:
    """Return the board's folder, under HOLDPOINT_HOME."""
    return Path(settings.HOME) / "shop-floor"


def publish(name: str, schedule: Schedule, key: str) -> Published:
    """Put on the board what a foreman reads: for each machine, what it works on, from when until when."""
    work: dict[str, list[dict[str, int]]] = {f"machine {machine}": [] for machine in range(schedule.machines)}
    for job, index, machine, start, end, _ in sorted(schedule.operations, key=lambda row: (row[3], row[0], row[1])):
        work[f"machine {machine}"].append({"job": job, "operation": index, "from": start, "until": end})
    draft = board() / f".{key}.{os.getpid()}"
    try:
        board().mkdir(parents=True, exist_ok=True)
        with draft.open("w", encoding="utf-8") as file:
            json.dump({"shop": name, "key": key, "ends": schedule.makespan, "work": work}, file, indent=1)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(board() / f"{key}.json")
    except OSError as error:
        raise EffectFailed(f"The board cannot be written to: {error}", retry=True) from error
    return Published(key=key, file=f"{key}.json")


def find(key: str) -> Published | None:
    """Return what is on the board under a key, None if nothing is."""
    return Published(key=key, file=f"{key}.json") if (board() / f"{key}.json").is_file() else None


def withdraw(key: str) -> None:
    """Take a schedule off the board."""
    (board() / f"{key}.json").unlink(missing_ok=True)
