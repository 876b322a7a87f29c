"""Runs a peer's own benchmark in the peers' environment, on a database of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import psycopg

from benchmarks.scratch import Scratch
from tests.harness.session import ROOT

PEERS = ROOT / ".venv-bench"


@cache
def has_peers() -> bool:
    """Make the peers' environment if it is missing; tell whether it is there."""
    wanted = Path(__file__).with_name("requirements-peers.txt")
    done = subprocess.run([sys.executable, str(ROOT / "config/local/install.py"), str(PEERS), str(wanted)])
    if done.returncode:
        print("The peers cannot be installed: their figures are left out.", flush=True)
    return not done.returncode


def measure_peer(scratch: Scratch, module: str, mode: str, *numbers: int) -> Any:
    """Run a peer's module and return the object on its last line."""
    with psycopg.connect(scratch.admin_url, autocommit=True) as admin:
        admin.execute("DROP DATABASE IF EXISTS peer WITH (FORCE)")
        admin.execute("CREATE DATABASE peer")
    command = [str(PEERS / "bin" / "python"), "-m", f"benchmarks.peers.{module}", mode, scratch.postgres.url("peer")]
    done = subprocess.run([*command, *map(str, numbers)], check=True, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    return json.loads(done.stdout.splitlines()[-1])
