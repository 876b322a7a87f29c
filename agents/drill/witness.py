"""Records the results of effects whose worker dies before it can save them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from agents.definition import outputs
from agents.definition.registered import RegisteredAgent
from checkpoints.values.canonical_json import encode_canonical

Seen = dict[str, list[Any]]


class Witness:
    """Writes each effect's output to a file as it returns; a kill -9 loses nothing written."""

    def __init__(self, known: RegisteredAgent, path: Path) -> None:
        self.known, self.path = known, path

    def __call__(self, point: str, step: str, value: Any) -> None:
        """Listen at the crash points; see checkpoints.crash_points."""
        if point != "after_effect":
            return
        try:
            output = outputs.checked(self.known.agent, self.known.spec, self.known.spec.step(step), value)
        except Exception:  # noqa: BLE001 - the runner says what is wrong with it
            return
        with self.path.open("ab") as file:
            file.write(encode_canonical([step, outputs.packed(output)]) + b"\n")

    def seen(self) -> Seen:
        """Return the recorded outputs by effect, in order."""
        found: Seen = {}
        for line in self.path.read_bytes().splitlines() if self.path.exists() else []:
            step, output = json.loads(line)
            found.setdefault(step, []).append(output)
        return found
