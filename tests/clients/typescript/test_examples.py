"""What the pages show runs as it stands, elsewhere with the packed package, and its model hears what people say."""

from __future__ import annotations

import re
import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest

from agents.models import Effect
from approvals.models import Gate
from tests.clients.typescript import node
from tests.clients.world import World, ended
from tests.conftest import Starter
from tests.harness.services import Service
from tests.harness.session import ROOT

PAGE = ROOT / "docs" / "frameworks" / "typescript.md"
LESS = {"to": "ACME Ltd", "amount": "100.00"}


@pytest.fixture(scope="module")
def elsewhere(package: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of somebody's own, into which the packed package was installed."""
    assert package.exists()
    folder = tmp_path_factory.mktemp("elsewhere")
    npm = shutil.which("npm") or ""
    packs = [npm, "pack", "--ignore-scripts", "--pack-destination", str(folder)]
    subprocess.run(packs, cwd=node.CLIENT, check=True, capture_output=True)
    modules = folder / "node_modules"
    modules.mkdir()
    for name in ("ai", "zod"):  # what the second example needs beside it
        (modules / name).symlink_to(node.MODULES / name)
    with tarfile.open(next(folder.glob("*.tgz"))) as archive:
        archive.extractall(folder, filter="data")
    (folder / "package").rename(modules / "holdpoint")
    block = re.search(r"```js\n(import .*?)```", PAGE.read_text(), re.DOTALL)
    assert block is not None
    (folder / "pay.mjs").write_text(block[1])
    return folder


@pytest.mark.long
def test_the_pages_examples_are_run_by_somebody_elsewhere(web: str, elsewhere: Path, start_service: Starter) -> None:
    world = World(web)
    running = start_service("pay", ["node", str(elsewhere / "pay.mjs")], world.env)
    gate = asked(world, running)
    running.says(rf"gate {gate.pk} asks: Pay invoice 7\. {web}/gates/{gate.pk}/")
    world.decides("edit", arguments={"wire": LESS})
    running.says(r"wiring 100\.00 to ACME Ltd under \w+")
    running.says(r"done: \{ id: 'tx_1', changes: \[ 'amount is now \"100\.00\"' \] \}")
    assert ended(gate.run_id)["wire_result"]["id"] == "tx_1"
    script = str(shutil.copy(node.CLIENT / "examples" / "approve.mjs", elsewhere))
    first = start_service("script", ["node", script], world.env)
    number = first.says(r"gate \d+").split()[1]
    first.kill()
    world.decides("edit", arguments={"wire": LESS})
    second = start_service("script", ["node", script, number], world.env)
    second.says(r'done; amount is now "100\.00"')


def asked(world: World, running: Service) -> Gate:
    running.says(r"gate \d+ asks")
    return world.gate()


class Agent:
    """The example's agent, which keeps its messages in a file."""

    def __init__(self, world: World, elsewhere: Path, folder: Path, start_service: Starter) -> None:
        for name in ("ai-sdk.mjs", "model.mjs"):
            shutil.copy(node.CLIENT / "examples" / name, elsewhere)
        self.world, self.script, self.start_service = world, elsewhere / "ai-sdk.mjs", start_service
        self.messages = folder / "messages.json"

    def start(self) -> Service:
        env = self.world.env | {"NODE_DEBUG": "holdpoint"}
        return self.start_service("agent", ["node", str(self.script), str(self.messages)], env)


@pytest.fixture
def agent(world: World, elsewhere: Path, tmp_path: Path, start_service: Starter) -> Agent:
    return Agent(world, elsewhere, tmp_path, start_service)


def test_an_agent_is_killed_while_it_waits_and_goes_on_from_its_messages_with_the_arguments_that_were_asked(
    agent: Agent,
) -> None:
    """Messages that were lost after the action do it no second time."""
    first = agent.start()
    gate = asked(agent.world, first)
    assert gate.asked.title == "Wire 120.00 to ACME Ltd"
    asking = agent.messages.read_text()
    first.kill()
    agent.world.decides("edit", arguments={"wire": LESS})
    agent.messages.write_text(asking.replace('"amount":"120.00"', '"amount":"920.00"'))
    other = agent.start()
    other.says("key_reused")
    assert "wiring" not in other.log
    assert not Effect.objects.filter(run__team=agent.world.team).exists()
    agent.messages.write_text(asking)
    again = agent.start()
    again.says(r"the agent: I was told .*changed_by_people.*amount is now ..100\.00")
    row = Effect.objects.get(run__team=agent.world.team)
    assert (row.status, row.run_id) == ("done", gate.run_id)
    assert f"wiring 100.00 under {row.key}" in again.log
    assert ended(gate.run_id)["wire_result"]["result"] == {"id": "tx_1"}
    agent.messages.write_text(asking)
    third = agent.start()
    third.says("the agent: I was told .*tx_1")
    assert "wiring" not in third.log
    assert Effect.objects.filter(run__team=agent.world.team).count() == 1


def test_a_no_and_its_reason_are_told_to_the_model(agent: Agent) -> None:
    running = agent.start()
    agent.world.decides("reject", comment="Not this month.")
    running.says(r"the agent: I was told .*Ann Okafor said no to wire: Not this month\. Do not do it another way\.")
    assert "wiring" not in running.log


ANSWERS = """
import { generateText, jsonSchema, stepCountIs, tool } from "ai";
import { AlreadyDone, Holdpoint, NotDone } from "holdpoint";
import { gated } from "holdpoint/ai-sdk";
import { model } from "./model.mjs";

const wire = tool({
  inputSchema: jsonSchema({ type: "object", properties: { to: { type: "string" }, amount: { type: "string" } } }),
  execute: () => { %s },
});
const { tools, answers } = gated(new Holdpoint({ log: console }), { wire }, { wire: () => ({ respond: true }) });
const messages = [{ role: "user", content: "Pay." }];
for (;;) {
  const answer = await answers(messages);
  if (answer) messages.push(answer);
  const result = await generateText({ model, tools, messages, stopWhen: stepCountIs(5) });
  messages.push(...result.response.messages);
  if (result.text) break;
}
console.log("ended:", JSON.stringify(messages.slice(-2)));
"""


@pytest.mark.long
@pytest.mark.parametrize(
    ("throws", "words", "status"),
    [
        ("console.log('wiring')", "Paid by card already", ""),
        ('throw new NotDone("The account is closed.")', r"The account is closed\.", "failed"),
        ('throw new Error("timeout")', r"Nobody knows whether it happened \(timeout\).*Do not do it again", "unknown"),
        # Of another call, which the tool asks for itself: its result was given as that of the tool.
        ('throw new AlreadyDone("The mail was sent.", {}, "sent")', r"Nobody knows whether it happened", "unknown"),
    ],
)
def test_a_model_is_told_what_people_answer_and_how_the_tool_failed(
    agent: Agent, elsewhere: Path, start_service: Starter, throws: str, words: str, status: str
) -> None:
    (elsewhere / "answers.mjs").write_text(ANSWERS % throws)
    running = start_service("agent", ["node", str(elsewhere / "answers.mjs")], agent.world.env)
    asked(agent.world, running)
    if status:
        agent.world.decides()
    else:
        agent.world.decides("", verdicts={"wire": {"verdict": "respond", "response": words}})
    running.says(f"ended: .*{words}")
    assert "wiring" not in running.log
    assert [each.status for each in Effect.objects.filter(run__team=agent.world.team)] == ([status] if status else [])


@pytest.mark.long
def test_an_edit_is_told_to_the_model_beside_the_tools_own_output(
    agent: Agent, elsewhere: Path, start_service: Starter
) -> None:
    own = "toModelOutput: ({ output }) => { return { type: 'text', value: `paid as ${output.id}` };"
    (elsewhere / "answers.mjs").write_text(ANSWERS % ("return { id: 'tx_1' }; }, " + own))
    running = start_service("agent", ["node", str(elsewhere / "answers.mjs")], agent.world.env)
    asked(agent.world, running)
    agent.world.decides("edit", arguments={"wire": LESS})
    running.says("ended: .*I was told .*paid as tx_1.*amount is now .*100")
