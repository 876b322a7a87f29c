"""An agent that names the checkpoints of its steps, as the run's mode says."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, SecretStr

from agents import Agent, Card, effect, gate, step
from checkpoints.models import Run


class Namer(Agent):
    """Prepares a migration, asks where its mode says so, and migrates."""

    name = "namer"

    class State(BaseModel):
        mode: str = ""
        token: SecretStr = SecretStr("s3cr3t-token")
        ready: bool = False
        done: bool = False

    @step(retry=1, backoff=0)
    def prepare(self, mode: str) -> dict[str, Any]:
        self.name_checkpoint("too early")
        names = {"": "before the migration", "secret": "with s3cr3t-token", "long": "x" * 101}
        self.name_checkpoint(names.get(mode, mode))
        self.checkpoint([1, 2])
        self.checkpoint([1], "half <b>")
        if mode == "fails" and self.attempt == 1:
            raise RuntimeError("failed here")
        if mode == "lost":
            Run.objects.filter(pk=self.run.id).update(token=Run.objects.get(pk=self.run.id).token + 1)
        return {"ready": True}

    @gate()
    def look(self, mode: str) -> Card | None:
        if mode == "gate":
            self.name_checkpoint("at the gate")
        return None

    @effect(irreversible=True, guarded=False)
    def migrate(self, ready: bool) -> dict[str, Any]:
        self.name_checkpoint("after the migration")
        return {"done": True}
