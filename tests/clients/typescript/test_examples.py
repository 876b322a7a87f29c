"""What the pages show runs as it stands, elsewhere with the packed package; people decide in a real browser."""

from __future__ import annotations

import re
import shutil
import subprocess
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from agents.models import Effect
from approvals.models import Gate
from tests.agents.remote import outside_program
from tests.clients.framework_programs import newer
from tests.clients.typescript import node
from tests.clients.world import World, ended
from tests.conftest import Starter
from tests.factories import ann
from tests.harness.services import Service
from tests.harness.session import ROOT

NewPage = Callable[..., Page]
PAGE = ROOT / "docs" / "frameworks" / "typescript.md"
AMOUNT = "[name='args.wire/amount']"


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


def decide(page: Page, gate: int, *, amount: str = "", choice: str = "approve", feedback: str = "") -> None:
    page.goto(f"/gates/{gate}/")
    if amount:
        page.fill(AMOUNT, amount)
    page.locator(f"#decide label[data-choice={choice}]").click()
    if feedback:
        page.fill("#feedback", feedback)
        page.locator("#then").get_by_text("Reject and close this gate").click()
    page.keyboard.press("Control+Enter")
    expect(page.locator("#gate-news")).to_contain_text("by Ann Okafor")


@pytest.mark.long
def test_the_pages_first_example_is_run_by_somebody_elsewhere(
    web: str, new_page: NewPage, elsewhere: Path, start_service: Starter
) -> None:
    world = World(web)
    running = start_service("pay", ["node", str(elsewhere / "pay.mjs")], world.env)
    gate = asked(world, running)
    running.says(rf"gate {gate.pk} asks: Pay invoice 7\. {web}/gates/{gate.pk}/")
    decide(new_page(ann(world.team)), gate.pk, amount="100.00")
    running.says(r"wiring 100\.00 to ACME Ltd under \w+")
    running.says(r"done: \{ id: 'tx_1', changes: \[ 'amount is now \"100\.00\"' \] \}")
    assert ended(gate.run_id)["wire_result"]["id"] == "tx_1"


@pytest.mark.long
def test_a_no_is_printed_by_the_pages_first_example(
    world: World, new_page: NewPage, elsewhere: Path, start_service: Starter
) -> None:
    running = start_service("pay", ["node", str(elsewhere / "pay.mjs")], world.env)
    decide(new_page(ann(world.team)), asked(world, running).pk, choice="reject", feedback="Not this month.")
    running.says(r"Ann Okafor said no to wire: Not this month\. Do not do it another way\.")


@pytest.mark.long
def test_a_script_is_killed_while_it_waits_and_goes_on_by_the_gates_number(
    world: World, new_page: NewPage, elsewhere: Path, start_service: Starter
) -> None:
    script = str(shutil.copy(node.CLIENT / "examples" / "approve.mjs", elsewhere))
    first = start_service("script", ["node", script], world.env)
    number = first.says(r"gate \d+").split()[1]
    first.kill()
    decide(new_page(ann(world.team)), int(number), amount="100.00")
    second = start_service("script", ["node", script, number], world.env)
    second.says(r'done; amount is now "100\.00"')
    assert Effect.objects.get(run__team=world.team).status == "done"


def asked(world: World, running: Service) -> Gate:
    """The gate that a program opens."""
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


def test_an_agent_is_killed_while_it_waits_and_goes_on_from_its_messages(agent: Agent, new_page: NewPage) -> None:
    first = agent.start()
    gate = asked(agent.world, first)
    assert gate.asked.title == "Wire 120.00 to ACME Ltd"
    first.kill()
    decide(new_page(ann(agent.world.team)), gate.pk, amount="100.00")
    again = agent.start()
    again.says(r"the agent: I was told .*changed_by_people.*amount is now ..100\.00")
    row = Effect.objects.get(run__team=agent.world.team)
    assert (row.status, row.run_id) == ("done", gate.run_id)
    assert f"wiring 100.00 under {row.key}" in again.log
    assert ended(gate.run_id)["wire_result"]["result"] == {"id": "tx_1"}


def test_a_no_and_its_reason_are_told_to_the_model(agent: Agent, new_page: NewPage) -> None:
    running = agent.start()
    decide(new_page(ann(agent.world.team)), asked(agent.world, running).pk, choice="reject", feedback="Not this month.")
    running.says(r"the agent: I was told .*Ann Okafor said no to wire: Not this month\. Do not do it another way\.")
    assert "wiring" not in running.log


def test_messages_that_were_lost_after_the_action_do_it_no_second_time(agent: Agent) -> None:
    running = agent.start()
    asked(agent.world, running)
    asking = agent.messages.read_text()
    agent.world.decides()
    running.says("the agent: I was told .*tx_1")
    agent.messages.write_text(asking)
    again = agent.start()
    again.says("the agent: I was told .*tx_1")
    assert "wiring" not in again.log
    assert Effect.objects.filter(run__team=agent.world.team).count() == 1


@pytest.mark.long
def test_words_that_vary_leave_an_approved_call_approved(agent: Agent) -> None:
    first = agent.start()
    asked(agent.world, first)
    first.kill()
    agent.world.decides()
    agent.script.write_text(agent.script.read_text().replace("Wire ${amount}", "Please pay ${amount}"))
    again = agent.start()
    again.says("the agent: I was told .*tx_1")
    assert Gate.objects.filter(team=agent.world.team).count() == 1


def test_what_was_asked_about_is_bound_to_its_arguments(agent: Agent) -> None:
    first = agent.start()
    asked(agent.world, first)
    first.kill()
    agent.world.decides()
    agent.messages.write_text(agent.messages.read_text().replace('"amount":"120.00"', '"amount":"920.00"'))
    again = agent.start()
    again.says("key_reused")
    assert "wiring" not in again.log
    assert not Effect.objects.filter(run__team=agent.world.team).exists()


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
def test_an_answer_in_its_place_is_the_tools_result(agent: Agent, elsewhere: Path, start_service: Starter) -> None:
    (elsewhere / "answers.mjs").write_text(ANSWERS % "console.log('wiring')")
    running = start_service("agent", ["node", str(elsewhere / "answers.mjs")], agent.world.env)
    asked(agent.world, running)
    agent.world.decides("", verdicts={"wire": {"verdict": "respond", "response": "Paid by card already."}})
    running.says("ended: .*I was told .*Paid by card already")
    assert "wiring" not in running.log


@pytest.mark.long
@pytest.mark.parametrize(
    ("throws", "words", "status"),
    [
        ('throw new NotDone("The account is closed.")', r"The account is closed\.", "failed"),
        ('throw new Error("timeout")', r"Nobody knows whether it happened \(timeout\).*Do not do it again", "unknown"),
        # Of another call, which the tool asks for itself: its result was given as that of the tool.
        ('throw new AlreadyDone("The mail was sent.", {}, "sent")', r"Nobody knows whether it happened", "unknown"),
    ],
)
def test_a_model_is_told_how_the_tool_failed(
    agent: Agent, elsewhere: Path, start_service: Starter, throws: str, words: str, status: str
) -> None:
    (elsewhere / "answers.mjs").write_text(ANSWERS % throws)
    running = start_service("agent", ["node", str(elsewhere / "answers.mjs")], agent.world.env)
    asked(agent.world, running)
    agent.world.decides()
    running.says(f"ended: .*{words}")
    assert Effect.objects.get(run__team=agent.world.team).status == status


def test_an_edit_is_told_to_the_model_beside_the_tools_own_output(
    agent: Agent, elsewhere: Path, start_service: Starter
) -> None:
    own = "toModelOutput: ({ output }) => { return { type: 'text', value: `paid as ${output.id}` };"
    (elsewhere / "answers.mjs").write_text(ANSWERS % ("return { id: 'tx_1' }; }, " + own))
    running = start_service("agent", ["node", str(elsewhere / "answers.mjs")], agent.world.env)
    asked(agent.world, running)
    agent.world.decides("edit", arguments={"wire": {"to": "ACME Ltd", "amount": "100.00"}})
    running.says("ended: .*I was told .*paid as tx_1.*amount is now .*100")


@pytest.mark.long
def test_a_second_call_under_the_same_id_asks_for_itself(agent: Agent, elsewhere: Path, start_service: Starter) -> None:
    twice = ANSWERS % "console.log('wiring'); return { id: 'tx_1' };"
    twice = twice.replace(
        "  if (result.text) break;", "  if (result.text) messages.push({ role: 'user', content: 'Once more.' });"
    )
    (elsewhere / "answers.mjs").write_text(twice)
    running = start_service("agent", ["node", str(elsewhere / "answers.mjs")], agent.world.env)
    first = agent.world.decides()
    assert newer(agent.world, first).asked.actions[0].id == "wire"
    assert running.log.count("wiring") == 1


STREAMED = """
import { MockLanguageModelV3, simulateReadableStream } from "ai/test";
import { model as whole } from "./whole.mjs";

export const model = new MockLanguageModelV3({
  doStream: async (options) => {
    const { content, finishReason, usage } = await whole.doGenerate(options);
    const parts = content.flatMap((each) => each.type !== "text" ? [each] : [
      { type: "text-start", id: "t" }, { type: "text-delta", id: "t", delta: each.text }, { type: "text-end", id: "t" },
    ]);
    const chunks = [{ type: "stream-start", warnings: [] }, ...parts, { type: "finish", finishReason, usage }];
    return { stream: simulateReadableStream({ chunks }) };
  },
});
"""
READS = {
    "generateText,": "streamText,",
    "await generateText(": "streamText(",
    "result.response.messages": "(await result.response).messages",
    'if (result.text) console.log("the agent:", result.text)': "console.log('the agent:', await result.text)",
    "result.content.some": "(await result.content).some",
}


@pytest.mark.long
def test_a_stream_asks_and_goes_on_in_the_same_way(agent: Agent, elsewhere: Path) -> None:
    script = agent.script.read_text()
    for whole, streamed in READS.items():
        assert whole in script
        script = script.replace(whole, streamed)
    (elsewhere / "model.mjs").rename(elsewhere / "whole.mjs")
    (elsewhere / "model.mjs").write_text(STREAMED)
    agent.script.write_text(script)
    first = agent.start()
    gate = asked(agent.world, first)
    first.kill()
    outside_program.decide(gate, "edit", arguments={"wire": {"to": "ACME Ltd", "amount": "100.00"}})
    again = agent.start()
    again.says(r"the agent: I was told .*changed_by_people.*amount is now ..100\.00")
    row = Effect.objects.get(run__team=agent.world.team)
    assert (row.status, row.run_id, row.attempts) == ("done", gate.run_id, 1)
