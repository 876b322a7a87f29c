"""A process that is forked from the warm one is what it would be had it been started by itself."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from tests.harness import services
from tests.harness.services import WARM, run
from tests.harness.session import ROOT
from tests.harness.waiting import until
from tests.harness.warm_python import kind

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
# Other tests may have named the settings; this command reads none.
VARIABLES = {
    "PYTHONPATH": "/one:/two", "PYTHONDONTWRITEBYTECODE": "1", "OF_ITS_OWN": "yes", "DJANGO_SETTINGS_MODULE": "",
}  # fmt: skip


def test_it_has_the_words_variables_and_files_of_one_that_is_started_by_itself() -> None:
    command = [sys.executable, "-c", SHOW, "a word"]
    assert WARM.can(command, os.environ | VARIABLES)
    warm = run(*command, env=VARIABLES)
    cold = subprocess.run(command, cwd=ROOT, env=os.environ | VARIABLES, capture_output=True, text=True)
    assert (warm.returncode, cold.returncode) == (7, 7), warm.stderr + cold.stderr
    shown, wanted = json.loads(warm.stdout), json.loads(cold.stdout)
    assert (shown.pop("path"), wanted.pop("path")) == ([str(ROOT), "/one"], ["", "/one"])
    assert shown == wanted


SHOW_SETTINGS = """
import json, logging, os, re, sys, threading
import django; django.setup()
from django.conf import settings
from django.core.files.storage import storages
from django.db import connection
from django.urls import reverse
from agents.definition import registry
from config.celery import app
app.loader.import_default_modules()
names = filter(str.isupper, dir(settings))
print(json.dumps({
    "database": [connection.settings_dict[name] for name in ("NAME", "HOST", "OPTIONS")],
    "settings": {name: re.sub(" at 0x\\w+", "", repr(getattr(settings, name))) for name in names},
    "files": storages["artifacts"].location, "broker": app.conf.broker_url, "agents": sorted(registry.names()),
    "variables": dict(os.environ), "threads": threading.active_count(), "address": reverse("readyz"),
    "logs": [logging.root.level, *(each.formatter.processors[-1].__class__.__name__ for each in logging.root.handlers)],
    "excepthook": sys.excepthook.__name__, "tasks": sorted(app.tasks),
}, default=repr))
"""
OTHERS = {
    "DJANGO_SETTINGS_MODULE": "config.settings", "DATABASE_URL": "postgres://somebody@127.0.0.1:9/elsewhere",
    "REDIS_URL": "redis://127.0.0.1:9/3", "HOLDPOINT_HOME": "/nowhere/at/all", "HOLDPOINT_LEASE": "3.5",
    "HOLDPOINT_LOG_FORMAT": "json", "HOLDPOINT_LOG_LEVEL": "WARNING",
    "HOLDPOINT_AGENTS": "tests.factories.sample_agents",
    "HOLDPOINT_ORIGINS": "https://holdpoint.example", "HOLDPOINT_ALLOWED_HOSTS": "holdpoint.example",
}  # fmt: skip


@pytest.mark.long
def test_it_reads_its_own_settings_where_the_project_is_read_already() -> None:
    command = [sys.executable, "-c", SHOW_SETTINGS]
    assert kind(command, OTHERS) == "project"
    warm = run(*command, env=OTHERS)
    cold = subprocess.run(command, cwd=ROOT, env=os.environ | OTHERS, capture_output=True, text=True)
    assert (warm.returncode, cold.returncode) == (0, 0), warm.stderr + cold.stderr
    assert json.loads(warm.stdout) == json.loads(cold.stdout)


def test_a_process_with_other_settings_reads_the_project_itself() -> None:
    later = {"DJANGO_SETTINGS_MODULE": "tests.rolling_updates.later_release"}
    assert kind([sys.executable, "manage.py", "worker"], later) == "servers"
    assert kind([sys.executable, "manage.py", "worker"], services.IMPATIENT) == "project"
    assert kind([sys.executable, "-c", ""], {}) == "servers"
    assert not WARM.can([sys.executable, "-m", "config.local", "run"], {}), "it starts from nothing"
    assert not WARM.can([sys.executable, "-c", ""], {"PYTHONHASHSEED": "1"})


WAITS = """
import signal, sys, time
signal.signal(signal.SIGTERM, lambda *_: sys.exit(5))
print(sys.stdin.readline().strip(), flush=True)
print(__import__("os").getpid(), flush=True)
while True:
    time.sleep(0.1)
"""


@pytest.mark.long
@pytest.mark.parametrize(("by", "code"), [(signal.SIGTERM, 5), (signal.SIGKILL, -9)])
def test_one_that_another_program_starts_ends_with_what_stands_for_it(tmp_path: Path, by: int, code: int) -> None:
    (tmp_path / "waits.py").write_text(WAITS)
    command, pipe = WARM.standing("waits.py"), subprocess.PIPE
    with subprocess.Popen(command, cwd=tmp_path, stdin=pipe, stdout=pipe, text=True) as standing:
        assert standing.stdin is not None
        assert standing.stdout is not None
        standing.stdin.write("a line\n")
        standing.stdin.flush()
        assert standing.stdout.readline() == "a line\n"
        process = psutil.Process(int(standing.stdout.readline()))
        standing.send_signal(by)
        assert standing.stdout.read() == ""
    assert standing.returncode == code
    until(lambda: not process.is_running(), what="the process ends")
