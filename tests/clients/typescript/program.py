"""Programs for Node that a test writes in a few lines, each with a client `hp`, and what becomes of them."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.clients.world import World
from tests.conftest import Starter
from tests.harness.services import Service

Program = Callable[..., "Running"]
# It says how it ends in one line: what it returns, or the class, the message and the members of what it throws.
FRAME = """\
import * as holdpoint from %(package)s;
const { Holdpoint, NotDone, Exact, Unreachable } = holdpoint;
const WIRE = { to: "ACME", amount: "120.00" };
const write = (word, value) => console.log(`${word} ${holdpoint.stringify(value)}`);
const said = (error) => ({ kind: error.name ?? typeof error, message: error.message ?? error, ...error });
const hp = new Holdpoint({ lease: 1, ...%(settings)s, onQuestion: %(on_question)s });
try {
  write("returned", await (async () => { %(code)s })());
} catch (error) {
  write("thrown", said(error));
}
"""


class Thrown(Exception):
    """A program ended by an error: `kind` is its class, `said` has its members."""

    def __init__(self, said: dict[str, Any]) -> None:
        super().__init__(f"{said['kind']}: {said['message']}")
        self.kind: str = said["kind"]
        self.said = said


@dataclass
class Running:
    service: Service

    def result(self) -> Any:
        """Wait for its end, and return what it returned. Raises Thrown."""
        word, _, said = self.service.says(r"(?m)^(returned|thrown) .*$").partition(" ")
        told = json.loads(said)
        if word == "thrown":
            raise Thrown(told)
        return told

    def wrote(self, word: str) -> Any:
        """Wait until it wrote a word, and return the value after it."""
        return json.loads(self.service.says(rf"(?m)^{word} .*$").partition(" ")[2])


def starter(package: Path, start_service: Starter) -> Program:
    """Return program(world, code, **settings) -> Running; `on_question` is a function in code."""

    def start(world: World, code: str, *, on_question: str = "undefined", **settings: Any) -> Running:
        given = {"package": json.dumps(package.as_uri()), "settings": json.dumps(settings), "code": code}
        given["on_question"] = on_question
        command = ["node", "--input-type=module", "--eval", FRAME % given]
        return Running(start_service("program", command, world.env))

    return start


WIRES = """
const draws = [{ kind: "command", at: "/to" }];
const options = { title: "Pay invoice 7", state: { invoice: 7 }, pinned: ["amount"], draws, ...%s };
return hp.approve("wire", WIRE, options, (call) => {
  write("call", call);
  return { id: "tx_1" };
});
"""


def wires(program: Program, world: World, options: str = "{}", **settings: Any) -> Running:
    return program(world, WIRES % options, **settings)
