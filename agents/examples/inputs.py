"""Reads the inputs of an example that are files of JSON in a folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from agents import AgentError


def in_folder(path: Path) -> list[dict[str, Any]]:
    """Return one input for each .json file of a folder, by name. Raises AgentError."""
    files = sorted(path.glob("*.json")) if path.is_dir() else []
    if not files:
        raise AgentError(f"There is no .json file in {path}.")
    return [json.loads(file.read_bytes()) for file in files]
