"""The ledger on disk: one line of JSON an entry, only ever appended to, synced before anybody is told."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

Entry = dict[str, Any]


class LedgerBroken(Exception):
    """A line of the ledger's file cannot be read, and it is not the unfinished last one."""


class LedgerFile:
    """Entries in order. One process writes; callers hold their own lock."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path = path
        self.entries: list[Entry] = []
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
        self._read()

    def append(self, kind: str, **facts: Any) -> Entry:
        """Add an entry durably. Raises OSError with the file as it was."""
        entry: Entry = {"seq": len(self.entries) + 1, "at": datetime.now(UTC).isoformat(), "kind": kind, **facts}
        end = os.fstat(self._file).st_size
        line = json.dumps(entry, ensure_ascii=False).encode() + b"\n"
        try:
            if os.write(self._file, line) != len(line):
                raise OSError("the ledger's disk is full")
            os.fsync(self._file)
        except OSError:
            os.ftruncate(self._file, end)
            raise
        self.entries.append(entry)
        return entry

    def close(self) -> None:
        os.close(self._file)

    def _read(self) -> None:
        data = self.path.read_bytes()
        whole = data.rfind(b"\n") + 1
        if whole < len(data):
            os.ftruncate(self._file, whole)  # written while the process died: nobody was told of it
        for number, line in enumerate(data[:whole].splitlines(), start=1):
            try:
                self.entries.append(json.loads(line))
            except ValueError as error:
                raise LedgerBroken(f"{self.path}, line {number}: {error}") from error
