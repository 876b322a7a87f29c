"""The bug: a new web process's first requests came at once, and each read the agents' declarations by itself.

`ast.parse` fails with "AST constructor recursion depth mismatch" in a thread that the garbage collector leaves for
another one that parses too. The agent at hand was then called unusable, or the request was answered with 500.
"""

from __future__ import annotations

import json
import sys

from tests.harness.services import run

# Each collection runs Python code, at which threads take turns: as finalizers and weak references do, only sure.
FIRST_REQUESTS = """
import gc, json, sys, threading
import django
django.setup()
from agents.definition import registry

def collecting(phase, info):
    for _ in range(50):
        pass

found, together = [], threading.Barrier(8)

def ask():
    together.wait()
    found.append(registry.declared())

threads = [threading.Thread(target=ask) for _ in range(8)]
gc.callbacks.append(collecting)
gc.set_threshold(300, 5, 5)
sys.setswitchinterval(1e-6)
for each in threads:
    each.start()
for each in threads:
    each.join()
sys.setswitchinterval(0.005)
gc.callbacks.clear()
told = [{"agents": sorted(map(list, each.agents)), "faults": each.faults} for each in found]
print(json.dumps({"told": told, "readings": len(set(map(id, found)))}))
"""


def test_threads_that_ask_for_the_agents_at_once_get_all_of_them_and_read_them_once() -> None:
    wish = {"DJANGO_SETTINGS_MODULE": "config.settings", "HOLDPOINT_AGENTS": "agents.examples.refunds"}
    done = run(sys.executable, "-c", FIRST_REQUESTS, env=wish)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert [each["faults"] for each in said["told"]] == [[]] * 8
    assert [[name for name, _ in each["agents"]] for each in said["told"]] == [["refunds"]] * 8
    assert said["readings"] == 1
