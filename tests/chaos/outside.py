"""The world outside as it is: the provider's ledgers, the mails that were sent, and the requests that went out."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

Entry = dict[str, Any]
MAIL = re.compile(r"(?m)^Message-ID: <([0-9a-f]{32})@holdpoint\.invalid>")


class Outside:
    """What a person finds who looks. All of it is on disk before anybody is told."""

    def __init__(self, home: Path, sends: Path) -> None:
        self.home, self.sends = home, sends

    def entries(self) -> list[Entry]:
        made: list[Entry] = []
        for name in ("ledger", "trade"):
            made += _entries(_lines(self.home / "sandbox" / f"{name}.jsonl"))
        return made

    def mails(self) -> dict[str, int]:
        sent = Counter[str]()
        folder = self.home / "mail"
        for path in folder.glob("*") if folder.exists() else ():
            sent.update(MAIL.findall(path.read_text(errors="replace")))
        return dict(sent)

    def requests(self) -> dict[str, int]:
        """Return how many requests went out under each key, as the errand agent wrote them down before each."""
        return dict(Counter(line["key"] for line in _lines(self.sends) if line["key"]))

    def rows(self) -> dict[str, Any]:
        return {"entries": self.entries(), "mails": self.mails(), "requests": self.requests()}

    def result_of(self, key: str, step: str) -> dict[str, Any] | None:
        """Return what the effect would have returned, had nobody died; None where it did not happen."""
        if step == "reply":
            return self._reply(key)
        for entry in self.entries():
            if entry["key"] == key and entry["stands"]:
                return _returned(step, entry)
        return None

    def _reply(self, key: str) -> dict[str, Any] | None:
        if key[:32] not in self.mails():
            return None
        wanted = f"<{key[:32]}@holdpoint.invalid>"
        for path in (self.home / "mail").glob("*"):
            for text in path.read_text(errors="replace").split("-" * 79):
                if wanted in text and (to := re.search(r"(?m)^To: (\S+)", text)):
                    return {"reply_sent": {"to": to[1], "message_id": wanted}}
        return None


def _returned(step: str, entry: Entry) -> dict[str, Any]:
    if step == "pay":
        facts = {"id": entry["id"], "amount": entry["amount"], "currency": entry["currency"], "status": "succeeded"}
        return {"payment": facts}
    names = {"order": "ordered", "charge": "charged", "deliver": "delivered", "book": "booked"}
    return {names[step]: entry["id"]} if step in names else {f"{step}_result": {"id": entry["id"]}}


def _entries(lines: list[Entry]) -> list[Entry]:
    made: list[Entry] = []
    for line in lines:
        if line["kind"] in ("refund", "make", "charge") and not str(line["key"]).startswith("shop-"):
            facts = line | line.get("wanted", {})
            kind = line.get("of", line["kind"])
            known = {name: facts.get(name) for name in ("key", "id", "amount", "currency", "words")}
            made.append({"kind": kind, "stands": True, **known})
        elif line["kind"] in ("cancel", "withdraw"):
            for each in made:
                each["stands"] = each["stands"] and each["id"] != line["id"]
    return made


def _lines(path: Path) -> list[Entry]:
    """Read whole lines: the last one may be under way."""
    text = path.read_text() if path.exists() else ""
    return [json.loads(line) for line in text[: text.rfind("\n") + 1].splitlines()]
