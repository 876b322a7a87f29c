"""An agent whose step takes all the memory that it gets."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from agents import Agent, step

PIECE = b"a large document " * 500_000
MOST = 512_000_000  # bytes, after which it is as slow as a machine that has no more


class Hoarder(Agent):
    """Keeps all that it reads, unless there is little to read."""

    name = "hoarder"

    class State(BaseModel):
        ledger: str
        much: bool = True
        read: int = 0

    @step(retry=1, timeout=120, backoff=0)
    def read_all(self, ledger: str, much: bool) -> dict[str, Any]:
        with Path(ledger).open("a") as began:
            began.write("began\n")
        kept = []
        while much:
            kept.append(PIECE + b".")
            if len(kept) * len(PIECE) > MOST:
                time.sleep(600)
        return {"read": len(kept)}
