"""What the examples have in common: the base class of their states' types, older states, inputs, texts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from agents import AgentError, upcast
from approvals.presentation.text.invisible import badge_count


class Noun(BaseModel):
    """What is not named here does not get in."""

    model_config = ConfigDict(extra="forbid")


def keep_state(since: str) -> Any:
    """Return an upcaster that takes over the runs of an older version which saved the same fields."""
    return classmethod(upcast(since)(lambda agent, state: state))


def read_inputs(folder: Path) -> list[dict[str, Any]]:
    """Return one input for each .json file of a folder, by name. Raises AgentError."""
    files = sorted(folder.glob("*.json")) if folder.is_dir() else []
    if not files:
        raise AgentError(f"There is no .json file in {folder}.")
    return [json.loads(file.read_bytes()) for file in files]


def count_invisible(text: str) -> int:
    """Count the characters that a reader cannot see."""
    return badge_count(text)[0]
