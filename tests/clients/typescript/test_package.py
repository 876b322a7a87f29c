"""The package as it is published: types that the server's description gives, and checks that find what is wrong."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.clients.typescript import node


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


TYPED = """
import { Holdpoint } from %s;

const hp = new Holdpoint();
const paid: string = await hp.approve("wire", { amount: "1.00" }, {}, (call) => call.arguments.amount);
const { status } = await hp.api.get("/api/runs/{run_id}", { path: { run_id: 7 } });
export const ended: boolean = status === "completed" && paid === "1.00";
// @ts-expect-error - there is no such address
await hp.api.get("/api/nowhere");
// @ts-expect-error - a run has no such status
export const odd: boolean = status === "finished";
// @ts-expect-error - the number of the run is missing
await hp.api.post("/api/runs/{run_id}/claims", {}, { path: {} });
// @ts-expect-error - this address takes no such body
await hp.api.post("/api/gates", { titel: "Pay" });
// @ts-expect-error - the arguments have no such member
await hp.approve("wire", { amount: "1.00" }, {}, (call) => call.arguments.account);
// @ts-expect-error - there is no such option
await hp.defer("wire", {}, { pined: ["amount"] });
"""


@pytest.mark.long
def test_addresses_bodies_and_answers_have_the_servers_types(package: Path, tmp_path: Path) -> None:
    (tmp_path / "typed.mts").write_text(TYPED % json.dumps(str(package)))
    config = {"extends": str(node.CLIENT / "tsconfig.json"), "include": ["*.mts"]}
    options = {"noEmit": True, "rootDir": "/", "typeRoots": [str(node.MODULES / "@types")]}
    (tmp_path / "tsconfig.json").write_text(json.dumps(config | {"compilerOptions": options}))
    compiles = [str(node.MODULES / ".bin" / "tsc"), "--project", str(tmp_path)]
    done = subprocess.run(compiles, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
