"""Agents whose steps wait for each other, or run past their limit, in the pools of workers."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from django.db import connection
from pydantic import BaseModel

from agents import Agent, step
from agents.session import heartbeat

heartbeat.GRACE = 1.0  # of the worker that reads this module


def written(file: str) -> list[str]:
    """Read what the steps wrote."""
    return Path(file).read_text().splitlines() if Path(file).exists() else []


class Meeter(Agent):
    """Waits in its step until so many runs are there at once, each with its session of PostgreSQL."""

    name = "meeter"

    class State(BaseModel):
        file: str
        wanted: int
        session: int = 0

    @step
    def meet(self, file: str, wanted: int) -> dict[str, Any]:
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_backend_pid()")
            session = cursor.fetchone()[0]
        with Path(file).open("a") as there:
            there.write(f"{session}\n")
        while len(written(file)) < wanted:
            time.sleep(0.02)
        return {"session": session}


class Overrunner(Agent):
    """Runs past its limit in the way that `how` says, as often as the attempts of the file are."""

    name = "overrunner"

    class State(BaseModel):
        file: str
        how: str
        said: str = ""

    @step(retry=1, timeout=1.0, backoff=0)
    def overrun(self, file: str, how: str) -> dict[str, Any]:
        with Path(file).open("a") as began:
            began.write("began\n")
        if len(written(file)) > 1:
            return {"said": "went on"}
        ends = time.monotonic() + 600
        while how == "waits" and time.monotonic() < ends:
            time.sleep(0.02)
        if how == "blocks":
            time.sleep(600)
        return {"said": "never"}
