"""Agents whose states have rules, which a step, an effect or an outcome may break as the run's mode says."""

from __future__ import annotations

from typing import Any, Self

from pydantic import BaseModel, Field, SecretStr, model_validator

from agents import Action, Agent, Append, Card, effect, gate, step, undo
from checkpoints.models import Run
from tests.factories.sample_agents import write_line


class Purse(BaseModel):
    ledger: str
    mode: str = ""
    limit: int = Field(default=10, le=1000)
    spent: int = 0
    ordered: list[int] = Field(default=[], max_length=3)
    token: SecretStr = SecretStr("s3cr3t-token")
    decision: dict[str, Any] | None = None

    @model_validator(mode="after")
    def within_limit(self) -> Self:
        if self.spent > self.limit:
            raise ValueError(f"{self.spent} is more than the limit of {self.limit}")
        if self.mode == "outcome" and self.decision:
            raise ValueError("nobody may decide this")
        if self.mode == "bug" and self.spent:
            raise TypeError("the rule has a bug")
        if self.mode == "secret" and self.spent:
            raise ValueError(f"the token {self.token.get_secret_value()} is of no use")
        return self


class Buyer(Agent):
    """Plans, asks, and orders once; each line of its ledger is something that really ran."""

    name = "buyer"
    State = Purse

    @step(backoff=0)
    def plan(self, ledger: str, mode: str) -> dict[str, Any]:
        write_line(ledger, "plan", self.attempt)
        if mode == "append":
            return {"ordered": Append([1, 2, 3, 4])}
        return {"spent": 99 if mode == "step" else 1}

    @gate(allows=["order"], edits=["limit"])
    def review(self, limit: int) -> Card:
        return Card(title="Order?", actions=[Action(id="order", title="Order", effect="order", pointer="/limit")])

    @effect(undo="send_back")
    def order(self, ledger: str, mode: str, *, key: str) -> dict[str, Any]:
        write_line(ledger, "order", key)
        if mode == "lost":
            Run.objects.filter(pk=self.run.id).update(token=Run.objects.get(pk=self.run.id).token + 1)
        return {"spent": 99 if mode in ("effect", "lost") else 5}

    @undo(idempotent=True)
    def send_back(self, ledger: str, *, key: str) -> None:
        write_line(ledger, "send_back", key)


class Careless(Buyer):
    name = "careless"
    invariants = "edits"
