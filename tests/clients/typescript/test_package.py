"""The package as it is published: types that the server's description gives, and checks that find what is wrong."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.clients.typescript import node


def test_the_types_are_those_of_the_servers_description(package: Path) -> None:
    assert package.exists()
    assert node.generated() == node.TYPES.read_text(), node.STALE


def test_it_needs_no_other_package_at_run_time() -> None:
    told = json.loads((node.CLIENT / "package.json").read_text())
    assert "dependencies" not in told
    assert all(version[0].isdigit() for version in told["devDependencies"].values()), "pin each exactly"


def test_a_machine_without_node_is_told_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setitem(os.environ, "PATH", str(tmp_path))
    assert node.main([]) == 1
    assert "need Node 20 or newer with npm, and there is none here: install it." in capsys.readouterr().err


def test_modules_stay_small() -> None:
    lines = {path.name: path.read_text().count("\n") for path in (node.CLIENT / "src").glob("*.ts")}
    del lines["openapi.ts"]  # generated
    assert {name: count for name, count in lines.items() if count >= 300} == {}
