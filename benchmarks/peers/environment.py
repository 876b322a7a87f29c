"""Runs a peer's own benchmark in the peers' environment, on a database of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import psycopg

from benchmarks.parts.scratch import ROOT, Scratch

PEERS = ROOT / ".venv-bench"


@cache
def python() -> str:
    """Return the Python of the peers' environment, which is made if it is missing."""
    wanted = str(Path(__file__).with_name("requirements-peers.txt"))
    subprocess.run([sys.executable, str(ROOT / "config/local/install.py"), str(PEERS), wanted], check=True)
    return str(PEERS / "bin" / "python")


def measure(scratch: Scratch, module: str, mode: str, *numbers: int, within: float = 600.0) -> Any:
    """Run a peer's module and return what its last line says. Raises TimeoutExpired after `within` seconds."""
    with psycopg.connect(scratch.admin_url, autocommit=True) as raw:
        raw.execute("DROP DATABASE IF EXISTS peer WITH (FORCE)")
        raw.execute("CREATE DATABASE peer")
    command = [python(), "-m", f"benchmarks.peers.{module}", mode, scratch.postgres.url("peer"), *map(str, numbers)]
    made = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, cwd=ROOT, timeout=within)
    return json.loads(made.stdout.splitlines()[-1])
