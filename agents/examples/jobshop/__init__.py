"""The jobshop agent: it schedules a job shop, and when a machine breaks down it repairs the schedule in two ways.

1. Two steps plan: `sequence` orders the jobs on each machine, by a dispatching rule, and `set_times` sets their times.
   Their output is validated by code that shares nothing with them (`check`).
2. A machine breaks down: the input says which, from when and until when. What it leaves open is derived.
3. `repair_locally` shifts the operations that must wait and swaps neighbours around them (`repair`); `solve_globally`
   plans everything anew that has not begun (`solver`). Both are validated as the first schedule was.
4. A person sees both as charts, with what each moves, when it ends and how long it took to find, and chooses one or
   sends both back: "keep job 3" holds that job to its planned times (`card`).
5. The chosen one is published on the shop floor's board, from where it can be withdrawn (`shop`).
"""

from __future__ import annotations

import time
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError, ValidationInfo, field_validator

from agents import Agent, AgentError, Card, StepFailed, effect, gate, step, undo, upcast, validator
from agents.examples.nouns import Noun, keep_state
from approvals.english import count_of

from . import card, repair, shop, solver
from .card import Feedback
from .check import find_faults
from .repair import Situation
from .shop import Breakdown, Downtime, Published, Repair, Schedule, Shop, Source, read_shop


class Effort(Noun):
    """How hard to plan: the agent's configuration."""

    rule: Literal["most work remaining", "shortest first", "longest first", "first come"] = "most work remaining"
    radius: int = Field(default=6, ge=0, le=100)  # rings around what was hit
    swaps: int = Field(default=2_000, ge=0, le=1_000_000)  # that are tried
    seconds: float = Field(default=5.0, gt=0, le=240)  # that the solver has
    workers: int = Field(default=2, ge=1, le=64)  # its threads


class JobShop(Agent):
    """Schedule a job shop, mend the schedule after a breakdown in two ways, ask which, and publish it."""

    name = "jobshop"
    version = "3"
    team = "Planning"
    libraries = ("ortools",)
    from_2 = keep_state("2")
    Config = Effort

    class State(Noun):
        """What is saved after every step."""

        source: Source
        breakdown: Breakdown = Field(default_factory=Breakdown)
        instance: Shop | None = None
        orders: list[list[int]] = Field(default_factory=list)  # by machine, its jobs in order
        plan: Schedule | None = None
        downtime: Downtime | None = None
        local_repair: Repair | None = None
        global_plan: Repair | None = None
        feedback: list[Feedback] = Field(default_factory=list)
        decision: dict[str, Any] | None = None
        chosen: Literal["", "local", "global"] = ""
        published: Published | None = None

        @field_validator("breakdown")
        @classmethod
        def breaks_a_machine_of_the_shop(cls, breakdown: Breakdown, info: ValidationInfo) -> Breakdown:
            source = info.data.get("source")
            machines = read_shop(source.text).machines if source else 0
            if source and breakdown.machine is not None and breakdown.machine >= machines:
                raise ValueError(f"there is no machine {breakdown.machine}; they count from 0 to {machines - 1}")
            return breakdown

    @upcast("1")
    @classmethod
    def from_1(cls, state: dict[str, Any]) -> dict[str, Any]:
        """Version 1 read other forms of a shop too; what it read is in `instance`."""
        if instance := state.get("instance"):
            rows = ["  ".join(f"{machine} {duration}" for machine, duration in job) for job in instance["jobs"]]
            state["source"]["text"] = "\n".join([f"{len(rows)} {instance['machines']}", *rows])
        return state

    @classmethod
    def title(cls, state: State) -> str:
        """Return the shop's name and size."""
        instance = read_shop(state.source.text)
        return f"{state.source.name}: {len(instance.jobs)} jobs on {instance.machines} machines"

    @classmethod
    def inputs_from(cls, path: Path) -> list[dict[str, Any]]:
        """One input for each file of a folder, by name, or for the one file."""
        files = sorted(filter(Path.is_file, path.glob("[!.]*"))) if path.is_dir() else [path]
        if not files:
            raise AgentError(f"There is no file in {path}.")
        try:
            texts = [(file.stem[:100], file.read_text(encoding="utf-8", errors="replace")) for file in files]
            return [{"source": Source(name=name, text=text).model_dump(mode="json")} for name, text in texts]
        except (OSError, ValidationError) as error:
            raise AgentError(f"{path} is no job shop: {error}") from error

    @step(title="Read the shop's orders", uses=[read_shop])
    def read_shop(self, source: Source) -> dict[str, Any]:
        """Read the shop from its file's text."""
        return {"instance": read_shop(source.text)}

    @step(title="Put the jobs in order", uses=[repair.sequence_jobs])
    def sequence(self, instance: Shop, feedback: list[Feedback]) -> dict[str, Any]:
        """Say who comes next on each machine; by another rule each time that the schedule was refused."""
        rules = list(repair.RULES)
        refused = sum(words.by == "check_plan" for words in feedback)
        rule = rules[(rules.index(self.config.rule) + refused) % len(rules)]
        self.note(f"Rule: {rule}.")
        return {"orders": repair.sequence_jobs(instance, rule)}

    @step(title="Set the times", uses=[repair.time_jobs], validators=["check_plan"], rings=1)
    def set_times(self, instance: Shop, orders: list[list[int]]) -> dict[str, Any]:
        """Say when each operation starts: as early as the orders let it."""
        starts = repair.time_jobs(instance, orders)
        if starts is None:
            raise StepFailed("The machines' orders wait for each other in a circle.")
        plan = shop.make_schedule(instance, starts)
        self.note(f"The schedule ends at {plan.makespan:,}.")
        return {"plan": plan}

    @validator
    def check_plan(self, instance: Shop, plan: Schedule) -> list[str] | None:
        """The first schedule keeps every rule of the shop."""
        return find_faults(instance.jobs, plan.operations) or None

    @step(title="Place the breakdown", uses=[shop.derive_downtime])
    def break_down(self, instance: Shop, plan: Schedule, breakdown: Breakdown) -> dict[str, Any]:
        """A machine stops: as the input says, and where it does not, as the schedule suggests."""
        downtime = shop.derive_downtime(breakdown, instance, plan)
        self.note(f"Machine {downtime.machine} stops at {downtime.since} and is back at {downtime.until}.")
        return {"downtime": downtime}

    @step(title="Repair the schedule locally", uses=[Situation, repair.repair_locally], validators=["check_local"])
    def repair_locally(
        self, instance: Shop, plan: Schedule, downtime: Downtime, feedback: list[Feedback]
    ) -> dict[str, Any]:
        """Shift what must wait, and swap neighbours around it; after a refusal only shift."""
        began = time.monotonic()
        now = _situation(instance, plan, downtime, feedback)
        limit = 0 if any(words.by == "check_local" for words in feedback) else self.config.swaps
        starts, swaps, tried = repair.repair_locally(now, radius=self.config.radius, limit=limit)
        how = f"The local repair shifts what must wait and makes {count_of(swaps, 'swap')}, of {tried:,} that it tried."
        repaired = repair.make_repair(now, starts, seconds=time.monotonic() - began, how=how)
        self.note(f"{how} It ends at {repaired.makespan:,}.")
        return {"local_repair": repaired}

    @validator
    def check_local(self, instance: Shop, plan: Schedule, downtime: Downtime, local_repair: Repair) -> list[str] | None:
        """The local repair keeps every rule of the shop, the machine's standstill and what has begun."""
        return find_faults(instance.jobs, local_repair.operations, stop=downtime, before=plan.operations) or None

    @step(title="Solve the schedule anew", uses=[Situation, solver.solve], validators=["check_global"])
    def solve_globally(
        self, instance: Shop, plan: Schedule, downtime: Downtime, feedback: list[Feedback]
    ) -> dict[str, Any]:
        """Plan everything anew that has not begun."""
        import_module("ortools.sat.python.cp_model")  # so that no measured time holds it
        began = time.monotonic()
        now = _situation(instance, plan, downtime, feedback)
        starts, bound, proven = solver.solve(now, seconds=self.config.seconds, workers=self.config.workers)
        proof = "and nothing could end sooner" if proven else f"and nothing can end before {bound:,}"
        how = f"The global plan sets {count_of(len(now.free), 'operation')} anew, {proof}."
        solved = repair.make_repair(now, starts, seconds=time.monotonic() - began, how=how)
        self.note(f"{how} It ends at {solved.makespan:,}.")
        return {"global_plan": solved}

    @validator
    def check_global(self, instance: Shop, plan: Schedule, downtime: Downtime, global_plan: Repair) -> list[str] | None:
        """The global plan keeps every rule of the shop, the machine's standstill and what has begun."""
        return find_faults(instance.jobs, global_plan.operations, stop=downtime, before=plan.operations) or None

    @gate(title="Choose a schedule", policy="schedules", allows=["dispatch"], on_reject="repair_locally")
    def choose(
        self, source: Source, instance: Shop, plan: Schedule, downtime: Downtime, local_repair: Repair,
        global_plan: Repair, feedback: list[Feedback],
    ) -> Card:  # fmt: skip
        """Ask which of the two goes to the shop floor."""
        now = _situation(instance, plan, downtime, feedback)
        return card.ask_which(source.name, now, plan, local_repair, global_plan, feedback)

    @step(title="Take the choice")
    def take_choice(self, decision: dict[str, Any] | None) -> dict[str, Any]:
        """Take down what was chosen."""
        choice = ((decision or {}).get("answer") or {}).get("choice", "")
        if choice not in ("local", "global"):
            raise StepFailed("Nobody chose between the two schedules.")
        return {"chosen": choice}

    @effect(title="Send the schedule to the shop floor", undo="withdraw", idempotent=True, readable="on_the_board")
    def dispatch(
        self, source: Source, local_repair: Repair, global_plan: Repair, chosen: str, *, key: str
    ) -> dict[str, Any]:
        """Publish the chosen schedule on the shop floor's board."""
        sheet = local_repair if chosen == "local" else global_plan
        published = shop.publish(source.name, sheet, key)
        self.note(f"Published under the key {key[:8]}; the schedule ends at {sheet.makespan:,}.")
        return {"published": published}

    def on_the_board(self, *, key: str) -> dict[str, Any] | None:
        """Return what was published under a key, None if nothing was."""
        sheet = shop.find_sheet(key)
        return {"published": Published(key=key, file=sheet.name)} if sheet.is_file() else None

    @undo(idempotent=True)
    def withdraw(self, published: Published | None) -> None:
        """Take the schedule off the board."""
        if published:
            shop.find_sheet(published.key).unlink(missing_ok=True)


def _situation(instance: Shop, plan: Schedule, downtime: Downtime, feedback: list[Feedback]) -> Situation:
    """Describe what is to be decided anew, and which jobs are not to move."""
    still, _ = card.read_feedback(feedback, len(instance.jobs))
    return Situation(instance, [row[3] for row in sorted(plan.operations)], downtime, frozenset(still))
