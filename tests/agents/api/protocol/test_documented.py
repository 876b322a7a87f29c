"""What docs/api.md shows works as it stands there."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

from django.conf import settings

from agents.models import Effect
from tests.clients.world import World, ended
from tests.harness.waiting import PATIENCE

TEXT = (Path(settings.BASE_DIR) / "docs/api.md").read_text()


def started(world: World) -> subprocess.Popen[str]:
    """The page's short example, by a shell."""
    (script,) = re.findall(r"^```sh\n(.*?)^```", TEXT, re.M | re.S)
    command = ["bash", "-euo", "pipefail", "-c", script]
    return subprocess.Popen(command, env=os.environ | world.env, text=True, stdout=subprocess.PIPE)


def test_the_short_example_does_what_people_left_of_it(web: str) -> None:
    world = World(web)
    with started(world) as shell:
        gate = world.decides("edit", arguments={"wire": {"to": "ACME Ltd", "amount": "100.00"}})
        said, _ = shell.communicate(timeout=PATIENCE)
    assert shell.returncode == 0
    row = Effect.objects.get(run=gate.run_id)
    assert f"{web}/gates/{gate.pk}/" in said
    assert f"Wiring 100.00 under the key {row.key}" in said
    assert (row.status, ended(gate.run_id)["wire_result"]) == ("done", {"id": "tx_1"})


def test_the_short_example_does_nothing_after_a_no(web: str) -> None:
    world = World(web)
    with started(world) as shell:
        gate = world.decides("reject", comment="Not this month.")
        said, _ = shell.communicate(timeout=PATIENCE)
    assert shell.returncode == 1
    assert "Not this month." in said
    assert not Effect.objects.filter(run=gate.run_id).exists()
