"""How the harness and its agents speak to each other: files, which variables of the environment name, and a signal."""

from __future__ import annotations

import json
import os

SENDS = "CHAOS_SENDS"  # each request of an agent, written down before it goes out
WORK = "CHAOS_WORK"  # the items of the program elsewhere
SIGNAL = "go"  # to trips
LIMIT = "CHAOS_LIMIT"  # once it is there, that program begins nothing new


def note_send(path: str, step: str, key: str) -> None:
    """Append one line to the file of requests, durably, in one write."""
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        os.write(file, json.dumps({"step": step, "key": key}).encode() + b"\n")
        os.fsync(file)
    finally:
        os.close(file)
