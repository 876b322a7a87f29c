"""The world outside as it is: the payment sandbox's ledger and the folder of sent mail."""

from __future__ import annotations

import email
import re
from collections import Counter
from email import policy
from pathlib import Path
from typing import Any

from agents.models import Effect
from tests.refunds.conftest import World


class Outside:
    """What a person finds who looks."""

    def __init__(self, world: World, mails: Path) -> None:
        self.world, self.mails = world, mails

    def refunds_of(self, run: int) -> dict[str, dict[str, Any]]:
        """The refunds that the provider has of a run, by idempotency key."""
        made = self.world.http.get("/ledger").json()["refunds"]
        return {each["key"]: each for each in made if each["reference"] == f"holdpoint run {run}"}

    def most_at_once(self, run: int) -> int:
        """How many refunds of a run stood side by side, at most."""
        mine = {each["id"] for each in self.refunds_of(run).values()}
        standing, most = set[str](), 0
        for entry in self.world.http.get("/ledger").json()["entries"]:
            if entry["kind"] == "refund" and entry["id"] in mine:
                standing.add(entry["id"])
            elif entry["kind"] == "cancel":
                standing.discard(entry["id"])
            most = max(most, len(standing))
        return most

    def mails_by_id(self) -> Counter[str]:
        """How often each Message-ID was sent."""
        texts = [path.read_text(errors="replace") for path in self.mails.glob("*")]
        return Counter(found for text in texts for found in re.findall(r"(?m)^Message-ID: (\S+)", text))

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


def message_id(row: Effect) -> str:
    """Under which a reply is sent."""
    return f"<{row.key[:32]}@holdpoint.invalid>"
