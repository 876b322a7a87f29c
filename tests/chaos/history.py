"""The history: a line of JSON for each request that a generator sends, for what came of it, and for each fault.

A request is `invoke` first, and later `ok`, `fail` (it was certainly not done) or `unknown`. Lines of one request share
their `op`. `at` are seconds since the beginning, by the monotonic clock.
"""

from __future__ import annotations

import json
import threading
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

Line = dict[str, Any]


class History:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.lock = threading.Lock()
        self.began = time.monotonic()
        self.file = path.open("a", buffering=1)
        self.ops = 0

    def invoke(self, f: str, **about: Any) -> int:
        with self.lock:
            self.ops += 1
            op = self.ops
        self._write(op=op, type="invoke", f=f, **about)
        return op

    def complete(self, op: int, type: str, f: str, **about: Any) -> None:
        self._write(op=op, type=type, f=f, **about)

    def close(self) -> None:
        self.file.close()

    def _write(self, **line: Any) -> None:
        now = {"at": round(time.monotonic() - self.began, 4), "time": datetime.now(UTC).isoformat()}
        with self.lock:
            self.file.write(json.dumps(line | now, default=str) + "\n")


def read(path: Path) -> list[Line]:
    """Read the lines of a history, without a last one that was cut off."""
    found = []
    for line in path.read_text().splitlines() if path.exists() else []:
        try:
            found.append(json.loads(line))
        except ValueError:
            continue
    return found


def answered(history: list[Line], f: str, type: str = "ok") -> list[Line]:
    """Return the requests of a kind that came to this end: what was asked, with what was answered over it."""
    asked = {line["op"]: line for line in history if line["type"] == "invoke" and line["f"] == f}
    return [asked[line["op"]] | line for line in history if line["f"] == f and line["type"] == type]
