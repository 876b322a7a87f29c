"""Agents whose steps hold a tab open in a browser that is a file: each line in it is something that really happened."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import BaseModel, SecretStr

from agents import Action, Agent, Card, effect, gate, on_restore, step, undo
from checkpoints.models import Run
from tests.factories.sample_agents import write_line


class Tab:
    def __init__(self, ledger: str, page: int, how: str) -> None:
        self.ledger, self.page, self.how = ledger, page, how
        write_line(ledger, how, page)

    @property
    def described(self) -> dict[str, Any]:
        return {"ledger": self.ledger, "page": self.page}

    def close(self) -> None:
        write_line(self.ledger, "closed", self.page)


class Surfer(Agent):
    """Opens a tab, reads on in it, asks, and sends what it shows."""

    name = "surfer"

    class State(BaseModel):
        ledger: str
        mode: str = ""
        token: SecretStr = SecretStr("s3cr3t-token")
        wish: str = ""
        opened: int = 0
        read: int = 0
        sent: int = 0

    @step(holds=["tab", "$HOLDPOINT_TEST_ZONE"], backoff=0)
    def open_tab(self, ledger: str, mode: str) -> dict[str, Any]:
        tab = Tab(ledger, 1, "opened")
        described = {**tab.described, **({"with": "s3cr3t-token"} if mode == "secret" else {})}
        self.hold("elsewhere" if mode == "undeclared" else "tab", tab, described)
        if mode == "lost":
            Run.objects.filter(pk=self.run.id).update(token=Run.objects.get(pk=self.run.id).token + 1)
        return {"opened": 1}

    @step(holds=["tab", "$HOLDPOINT_TEST_ZONE"], backoff=0)
    def read_on(self, ledger: str, mode: str, wish: str, opened: int) -> dict[str, Any]:
        tab = self.held("tab")
        write_line(ledger, "read", tab.page)
        tab.page += 1
        if mode == "fails" and self.attempt == 1:
            raise RuntimeError("the page is gone")
        self.hold("tab", tab, tab.described)
        return {"read": tab.page}

    @gate(allows=["send"])
    def review(self, read: int) -> Card:
        return Card(title="Send?", actions=[Action(id="send", title="Send", effect="send", pointer="/read")])

    @effect(undo="unsend", holds=["tab"])
    def send(self, read: int, ledger: str, mode: str, *, key: str) -> dict[str, Any]:
        tab = self.held("tab")
        write_line(ledger, "sent", tab.page)
        if mode == "opens":
            self.hold("tab", tab, tab.described)
        return {"sent": tab.page}

    @undo(idempotent=True)
    def unsend(self, ledger: str, *, key: str) -> None:
        write_line(ledger, "unsent", 0)

    @on_restore("tab")
    def reopen(self, described: Any) -> Tab | None:
        if Path(described["ledger"] + ".down").exists():
            raise ConnectionError("the browser is down")
        if Path(described["ledger"] + ".empty").exists():
            return None
        return Tab(described["ledger"], described["page"], "reopened")
