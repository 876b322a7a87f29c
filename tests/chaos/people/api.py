"""Requests of people, with a line of the history for each and one for what came of it."""

from __future__ import annotations

import json
import secrets
import time
from dataclasses import dataclass, field
from typing import Any

import httpx

from ..history import History

TIMEOUT = 25.0  # seconds; longer than the server may take to find that the database is away
PAUSE = 0.5  # seconds before a request is sent again
BUSY = (408, 425, 429)


@dataclass
class Answer:
    """What came back. `type` is ok, fail or unknown; `status` 0 where no answer came."""

    type: str
    status: int
    body: dict[str, Any]

    @property
    def code(self) -> str:
        return str(self.body.get("code") or "")


@dataclass
class Person:
    name: str
    user: int
    token: str
    base: str
    history: History
    http: httpx.Client = field(init=False)

    def __post_init__(self) -> None:
        headers = {"Authorization": f"Bearer {self.token}"}
        self.http = httpx.Client(base_url=self.base, headers=headers, timeout=TIMEOUT, trust_env=False)

    def get(self, path: str) -> dict[str, Any] | None:
        """Read something; None where it cannot be read now."""
        try:
            answer = self.http.get(f"/api/{path}")
        except httpx.HTTPError:
            return None
        return _read(answer) if answer.status_code == 200 else None

    def post(self, f: str, path: str, body: dict[str, Any], key: str = "", **about: Any) -> Answer:
        key = key or secrets.token_hex(12)
        op = self.history.invoke(f, by=self.name, user=self.user, path=path, key=key, **about)
        answer = self._sent(path, body, key)
        said = {"status": answer.status, "code": answer.code, "id": answer.body.get("id")}
        if answer.type == "fail":
            said["detail"] = str(answer.body.get("detail", ""))[:300]
        self.history.complete(op, answer.type, f, **said)
        return answer

    def insist(self, f: str, path: str, body: dict[str, Any], tries: int = 6, **about: Any) -> Answer:
        """Send an order again under the same key until it is known what came of it."""
        key = secrets.token_hex(12)
        answer = self.post(f, path, body, key, **about)
        for _ in range(tries):
            if answer.type != "unknown":
                break
            time.sleep(PAUSE)
            answer = self.post(f, path, body, key, **about)
        return answer

    def _sent(self, path: str, body: dict[str, Any], key: str) -> Answer:
        try:
            answer = self.http.post(f"/api/{path}", json=body, headers={"Idempotency-Key": key})
        except httpx.HTTPError as error:  # where this one did not even connect, an earlier try may have come through
            return Answer("unknown", 0, {"code": type(error).__name__})
        if answer.status_code < 300:
            return Answer("ok", answer.status_code, _read(answer) or {})
        certain = 400 <= answer.status_code < 500 and answer.status_code not in BUSY
        return Answer("fail" if certain else "unknown", answer.status_code, _read(answer) or {})


def _read(answer: httpx.Response) -> dict[str, Any] | None:
    try:
        found = json.loads(answer.content)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None
