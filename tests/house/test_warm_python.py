"""A process that is forked from the warm one is what it would be had it been started by itself."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys

from tests.harness.services import WARM, run
from tests.harness.session import ROOT

SHOW = """
import json, os, signal, sys, threading
print(json.dumps({
    "words": sys.argv, "variables": dict(os.environ), "folder": os.getcwd(), "path": sys.path[:2],
    "bytecode": [sys.pycache_prefix, sys.dont_write_bytecode], "main": __name__,
    "ignored": [each for each in signal.valid_signals() if signal.getsignal(each) is signal.SIG_IGN],
    "open": [each for each in os.listdir("/proc/self/fd") if each > "2" and os.path.exists(f"/proc/self/fd/{each}")],
    "threads": threading.active_count(),
    "ours": sorted({each.partition(".")[0] for each in sys.modules} & {"agents", "approvals", "checkpoints"}),
}))
sys.exit(7)
"""
VARIABLES = {"PYTHONPATH": "/one:/two", "PYTHONDONTWRITEBYTECODE": "1", "OF_ITS_OWN": "yes"}


def test_it_has_the_words_variables_and_files_of_one_that_is_started_by_itself() -> None:
    command = [sys.executable, "-c", SHOW, "a word"]
    assert WARM.can(command, os.environ | VARIABLES)
    warm = run(*command, env=VARIABLES)
    cold = subprocess.run(command, cwd=ROOT, env=os.environ | VARIABLES, capture_output=True, text=True)
    assert (warm.returncode, cold.returncode) == (7, 7), warm.stderr + cold.stderr
    shown, wanted = json.loads(warm.stdout), json.loads(cold.stdout)
    assert (shown.pop("path"), wanted.pop("path")) == ([str(ROOT), "/one"], ["", "/one"])
    assert shown == wanted


def test_its_end_is_told_as_it_was() -> None:
    killed = run(sys.executable, "-c", "import os, signal; os.kill(os.getpid(), signal.SIGKILL)")
    assert killed.returncode == -signal.SIGKILL
    failed = run(sys.executable, "-c", "raise ValueError('of its own')")
    assert (failed.returncode, "ValueError: of its own" in failed.stderr) == (1, True)


def test_a_command_that_is_to_start_from_nothing_does() -> None:
    assert not WARM.can([sys.executable, "-m", "config.local", "run"], {})
    assert not WARM.can([sys.executable, "-m", "pytest"], {})
    assert not WARM.can([sys.executable, "-c", ""], {"PYTHONHASHSEED": "1"})
    assert not WARM.can(["make", "-n"], {})
