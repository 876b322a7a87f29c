"""What the rules, the board and the documentation name is told by `/metrics`, and all that it tells is documented."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from typing import Any

import pytest
import yaml
from django.test import Client
from django.utils import timezone
from prometheus_client import REGISTRY
from prometheus_client.parser import text_string_to_metric_families

from agents.definition import registry
from agents.models import SweeperPass
from approvals.live import consumer  # noqa: F401 - a web process has the tailer's
from approvals.models import ChannelState, Unrun
from checkpoints.events import tailer
from tests.factories import make_gate
from tests.harness.session import ROOT

NAME = re.compile(r"\bholdpoint_[a-z_]+")
PROMTOOL = shutil.which("promtool") or ""
FOLDER = ROOT / "docs" / "monitoring"


def told() -> dict[str, set[str]]:
    """Each of our samples by its name, with its labels; of a real scrape with something of everything in it."""
    Unrun.objects.create(gate=make_gate(), due_at=timezone.now(), raised_at=timezone.now())
    ChannelState.objects.get_or_create(channel="email")
    SweeperPass.beat()
    tailer.EVENTS.labels("gate.opened", "refunds").inc(0)
    registry.names()  # read as a web process starts, which takes longer than a scrape may
    Client().get("/healthz")
    answer = Client().get("/metrics").content.decode()
    found: dict[str, set[str]] = {}
    for family in text_string_to_metric_families(answer):
        for sample in family.samples:
            if sample.name.startswith("holdpoint_"):
                found.setdefault(sample.name, set()).update(sample.labels)
    return found


def rules() -> list[dict[str, Any]]:
    (group,) = yaml.safe_load((FOLDER / "alerts.yml").read_text())["groups"]
    return list(group["rules"])


def board() -> list[str]:
    """Every expression of the board."""
    panels = json.loads((FOLDER / "board.json").read_text())["panels"]
    return [target["expr"] for panel in panels for target in panel["targets"]]


def documented() -> set[str]:
    return set(re.findall(r"`(holdpoint_[a-z_]+)`", (ROOT / "docs" / "watch.md").read_text()))


def test_every_metric_of_the_rules_and_of_the_board_is_told_with_its_labels() -> None:
    found = told()
    for expression in [*(rule["expr"] for rule in rules()), *board()]:
        names = NAME.findall(expression)
        assert names or "up{" in expression, expression
        for name in names:
            assert name in found, expression
        asked = re.findall(r"by \(([a-z, ]+)\)", expression) + re.findall(r"([a-z]+)=~?\"", expression)
        labels = {label.strip() for each in asked for label in each.split(",")} - {"instance", "job"}
        assert labels <= set().union(*(found[name] for name in names)), expression


def test_every_alert_and_every_metric_is_documented_and_no_other() -> None:
    told()
    families = {family.name for family in REGISTRY.collect() if family.name.startswith("holdpoint_")}
    counters = {family.name for family in REGISTRY.collect() if family.type == "counter"}
    assert documented() == {f"{name}_total" if name in counters else name for name in families}
    text = (ROOT / "docs" / "watch.md").read_text()
    assert all(f"`{rule['alert']}`" in text for rule in rules())


@pytest.mark.skipif(not PROMTOOL, reason="promtool (Debian: prometheus) is not installed")
def test_the_rules_fire_on_what_they_are_there_for() -> None:
    command = [PROMTOOL, "test", "rules", "tests/config/alerts_test.yml"]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr + ran.stdout


def test_every_panel_has_a_place_of_its_own() -> None:
    panels = json.loads((FOLDER / "board.json").read_text())["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    places = [
        (x, y)
        for panel in panels
        for x in range(panel["gridPos"]["x"], panel["gridPos"]["x"] + panel["gridPos"]["w"])
        for y in range(panel["gridPos"]["y"], panel["gridPos"]["y"] + panel["gridPos"]["h"])
    ]
    assert len(places) == len(set(places))
    assert max(x for x, _ in places) < 24
