"""A class's name stands for one thing, so that a search for it finds one class; the examples' nouns are their own."""

from __future__ import annotations

import ast
from collections import defaultdict

from tests.harness.session import ROOT

APPS = ("agents", "approvals", "checkpoints", "config")
OWN = {"examples", "migrations", "commands"}  # folders whose names nobody looks for elsewhere


def test_no_two_classes_of_the_apps_have_the_same_name() -> None:
    found = defaultdict(list)
    for path in sorted(path for app in APPS for path in (ROOT / app).rglob("*.py")):
        if OWN.isdisjoint(path.parts):
            for node in ast.parse(path.read_text()).body:
                if isinstance(node, ast.ClassDef):
                    found[node.name].append(str(path.relative_to(ROOT)))
    assert {name: places for name, places in found.items() if len(places) > 1} == {}
