"""Runs that past versions of the bundled agents left behind: today's code takes each on, and brings it to its end.

`corpus/<agent>/<version>/` holds the plan of that version, and what runs of it had saved, with the step that came next.
A version is never taken out of it; a new one adds its folder.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from django.test import override_settings

from agents.definition import registry
from agents.waits import signals, step_waits
from approvals.models import Gate
from checkpoints import actors, store
from checkpoints.models import Run
from checkpoints.runs import plans
from checkpoints.runs.plans import PlanSpec
from config.examples import LIBRARIES
from tests.agents.examples.assistant.endpoint import KEY, Endpoint, Reply, running
from tests.agents.examples.refunds.conftest import World, sandbox, shared_sandbox, start_sandbox
from tests.factories import bob, make_team
from tests.factories.driven_runs import advance_to_rest, answer, decide, state

__all__ = ["sandbox", "shared_sandbox", "start_sandbox"]

CORPUS = Path(__file__).parent / "corpus"
SAVED = sorted(path for path in CORPUS.glob("*/*/*.json") if path.name != "plan.json")
NEWEST = {path.parent.parent: int(path.parent.name) for path in sorted(SAVED, key=lambda path: int(path.parent.name))}
MIDWAY = ("answered", "approved", "asks_to_confirm", "chosen", "written")  # how far such a run had come
ROUNDS = 12  # of people's answers, after which a run should have ended
# What a completed run of each agent has in its state, however far it had come before.
OUTCOMES = {
    "refunds": "reply_sent",
    "restock": "summary",
    "rollout": "summary",
    "research": "report",
    "inquiry": "answer",
    "jobshop": "published",
    "assistant": "answer",
}


@pytest.fixture(scope="module", autouse=True)
def bundled_agents() -> Iterator[None]:
    """Serve what comes with the product, and nothing else."""
    with override_settings(HOLDPOINT_AGENTS=[f"agents.examples.{name}" for name in LIBRARIES]):
        registry.forget()
        yield
        registry.forget()


@pytest.fixture(scope="module")
def model() -> Iterator[Endpoint]:
    """A language model of few words."""
    with running() as endpoint:
        endpoint.script = [Reply("All done.")]
        yield endpoint


@pytest.fixture(autouse=True)
def world(settings: Any, sandbox: World, model: Endpoint, tmp_path: Path) -> Iterator[None]:
    """A world of its own for each run."""
    settings.SANDBOX_URL = sandbox.url
    settings.HOME = tmp_path
    settings.HOLDPOINT_ASSISTANT_FOLDER = str(tmp_path / "desk")
    settings.OPENAI_BASE_URL, settings.OPENAI_API_KEY = model.url, KEY
    yield
    sandbox.take_back()


def plan_at(folder: Path) -> PlanSpec:
    """The plan of a version. Of refunds 1 to 5 none was kept; their steps were those of 6."""
    if served := registry.agents().get((folder.parent.name, folder.name)):
        return served.spec
    kept = folder if (folder / "plan.json").exists() else folder.with_name("6")
    return replace(PlanSpec.from_json(json.loads((kept / "plan.json").read_text())), version=folder.name)


def left_behind(path: Path, desk: Path) -> Run:
    """A queued run of the old version that had come as far as this."""
    saved = json.loads(path.read_text())
    values = saved["state"] | ({"folder": str(desk.resolve())} if saved["state"].get("folder") else {})
    return store.start(
        plan=plans.keep(plan_at(path.parent)),
        team=make_team(),
        title=path.stem,
        values=values,
        first_step=saved["next_step"],
        by=actors.SYSTEM,
        environment={"config": saved.get("config", {})},
    )


def bring_to_its_end(run: Run) -> Run:
    """Answer whatever the run, or a run that it starts, asks or waits for."""
    for _ in range(ROUNDS):
        going = Run.objects.filter(team=run.team, status__in=["queued", "running"]).order_by("pk")
        for each in going:
            advance_to_rest(each)
        if going.exists():  # what was started, or woken, meanwhile
            continue
        run.refresh_from_db()
        if run.status not in ("queued", "running", "waiting"):
            return run
        gates = Gate.objects.open().select_related("run__plan", "policy").filter(run__team=run.team)
        if gate := gates.order_by("pk").first():
            answer_gate(gate)
        elif run.next_step == "watch":
            # Not well, so that it asks: what was approved under the old version is not on record here.
            signals.send(run, "health", {"errors": 5}, key="probe", by=actors.SYSTEM)
        else:
            step_waits.wake_now(run, by=actors.SYSTEM)
    raise AssertionError(f"{run} still waits at {run.next_step}")


def answer_gate(gate: Gate) -> None:
    """Say yes, choose, or fill in what is missing."""
    assert gate.kind == Gate.Kind.REVIEW, gate.asked.summary
    card = gate.standing().card
    if card.question:
        answer(gate.run, card.question["choices"][-1]["id"])
    elif gate.step == "ask_facts":
        decide(
            gate.run,
            "edit",
            by=bob(gate.run.team),
            arguments={"facts": {**card.actions[0].arguments, "order_number": "20391"}},
        )
    else:
        decide(gate.run)


def marks(path: Path) -> tuple[pytest.MarkDecorator, ...]:
    """Brought on always: what the first version left midway, and the one before the newest there and at the start."""
    version, newest = int(path.parent.name), NEWEST[path.parent.parent]
    often = version in (1, newest - 1) if path.stem in MIDWAY else version == newest - 1 and path.stem == "given"
    return () if often else (pytest.mark.long,)


@pytest.mark.parametrize(
    "path", [pytest.param(path, marks=marks(path), id=str(path.relative_to(CORPUS))) for path in SAVED]
)
def test_a_run_of_a_past_version_is_brought_to_its_end(path: Path, tmp_path: Path) -> None:
    (tmp_path / "desk").mkdir()
    run = left_behind(path, tmp_path / "desk")
    if not run.next_step:
        assert state(run).keys() == json.loads(path.read_text())["state"].keys()
        return
    assert bring_to_its_end(run).status == "completed", run.reason
    agent = path.relative_to(CORPUS).parts[0]
    assert run.plan.version == registry.agent_named(agent).spec.version
    assert state(run)[OUTCOMES[agent]]


def test_every_agent_that_is_served_has_left_runs_at_a_gate_and_elsewhere() -> None:
    assert {agent for agent, _ in registry.agents()} == set(OUTCOMES)
    for agent, version in registry.agents():
        steps = [json.loads(path.read_text())["next_step"] for path in SAVED if path.parent == CORPUS / agent / version]
        kinds = {plan_at(CORPUS / agent / version).step(step).kind for step in steps if step}
        assert kinds >= ({"step"} if agent == "research" else {"step", "gate"}), (agent, version)
