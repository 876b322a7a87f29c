"""The world outside as it is: the payment sandbox's ledger and the folder of sent mail."""

from __future__ import annotations

import email
import re
from collections import Counter
from email import policy
from pathlib import Path
from typing import Any

from agents.models import Effect
from tests.agents.examples.refunds.conftest import World


class Outside:
    def __init__(self, world: World, mails: Path) -> None:
        self.world, self.mails = world, mails
        self.read: dict[tuple[Path, int], list[str]] = {}

    def refunds_of(self, run: int) -> dict[str, dict[str, Any]]:
        return _made(self.world.http.get("/ledger").json(), run)

    def most_at_once(self, run: int) -> int:
        ledger = self.world.http.get("/ledger").json()
        mine = {each["id"] for each in _made(ledger, run).values()}
        standing, most = set[str](), 0
        for entry in ledger["entries"]:
            if entry["kind"] == "refund" and entry["id"] in mine:
                standing.add(entry["id"])
            elif entry["kind"] == "cancel":
                standing.discard(entry["id"])
            most = max(most, len(standing))
        return most

    def mails_by_id(self) -> Counter[str]:
        """How often each Message-ID was sent. A file that has not grown is read once."""
        sent = Counter[str]()
        for path in self.mails.glob("*"):
            seen = path, path.stat().st_size
            if seen not in self.read:
                self.read[seen] = re.findall(r"(?m)^Message-ID: (\S+)", path.read_text(errors="replace"))
            sent.update(self.read[seen])
        return sent

    def result_of(self, row: Effect) -> dict[str, Any] | None:
        """What the effect would have returned, had its worker lived; None where it did not happen."""
        if row.step == "pay":
            refund = self.refunds_of(row.run_id).get(row.key)
            return refund and {"payment": {name: refund[name] for name in ("id", "amount", "currency", "status")}}
        wanted = message_id(row)
        for path in self.mails.glob("*"):
            for text in path.read_bytes().split(b"-" * 79 + b"\n"):
                sent = email.message_from_bytes(text, policy=policy.default)
                if sent["Message-ID"] == wanted:
                    return {"reply_sent": {"to": str(sent["To"]), "message_id": wanted}}
        return None


def _made(ledger: dict[str, Any], run: int) -> dict[str, dict[str, Any]]:
    return {each["key"]: each for each in ledger["refunds"] if each["reference"] == f"holdpoint run {run}"}


def message_id(row: Effect) -> str:
    return f"<{row.key[:32]}@holdpoint.invalid>"
