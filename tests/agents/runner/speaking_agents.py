"""Agents that say how far they are while they run."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, SecretStr

from agents import Agent, Retry, step
from agents.models import Spoken
from agents.steps.progress import LONGEST


class Speaker(Agent):
    """Says things, and notes what a page would have been shown."""

    name = "speaker"

    class State(BaseModel):
        """`mode` picks what it does."""

        mode: str = ""
        secret: SecretStr = SecretStr("hunter2-hunter2")
        shown: list[str] = []

    @step(backoff=0)
    def speak(self, mode: str) -> dict[str, Any]:
        """Say something, look at what is shown, and say more at once, which is passed over."""
        words = {
            "secret": "It is hunter2-hunter2.", "odd": "a\0b\ud800", "long": "x" * 30_000 + "end",
            "unfinished": "It is hunter2-hun", "cut": "It is hunter2-hunter2" + "x" * (LONGEST - 8),
        }  # fmt: skip
        self.progress(words.get(mode, f"attempt {self.attempt}"))
        self.progress("too soon after that")
        shown = [f"{each.step} {each.attempt}: {each.text}" for each in Spoken.objects.filter(run=self.run.id)]
        if mode == "fails once" and self.attempt == 1:
            raise Retry("Once more.")
        return {"shown": shown}

    @step
    def keep_quiet(self, shown: list[str]) -> None:
        """Say nothing."""
