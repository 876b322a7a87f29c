"""`manage.py drill AGENT --input FILE|JSON`: kills the agent at every step and compares it with an undisturbed run."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

from django.contrib.auth.models import User
from django.core.management.base import BaseCommand, CommandError, CommandParser

from agents.definition import environment, registry
from agents.definition.registered import RegisteredAgent
from agents.drill import children, report
from agents.drill.children import done_in_child
from agents.drill.exercise import MOMENTS, Exercise
from agents.drill.record import Answers, read_signals
from agents.errors import AgentError, InputRefused
from agents.runs.start import validate_input
from checkpoints.errors import ValueRefused
from checkpoints.values.canonical_json import parse_json

from .run_agent import Command as RunAgent
from .run_agent import describe_refusal, team_named


class Command(BaseCommand):
    """Prints a table of steps and moments. Exit code 1 where a step is not restartable."""

    help = (
        "Runs an agent again and again, kills its worker at each step (kill -9: before the step, after it and before "
        "its save, after its save), lets another worker recover it, and compares status, state and effects with an "
        "undisturbed run. The agent's effects are really performed."
    )
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the agent's name and its one input; see --help."""
        parser.add_argument("name", help="the agent's name")
        parser.add_argument("--input", required=True, help="JSON, or a file")
        parser.add_argument("--config", default="{}", help="JSON: what differs from the agent's default configuration")
        parser.add_argument("--answer", default="approve", help="approve, reject, or a JSON file of answers by gate")
        parser.add_argument(
            "--as",
            dest="people",
            action="append",
            default=[],
            help="the username of a person who decides gates; may be repeated",
        )
        parser.add_argument("--signals", default="{}", help="JSON, or a file: what to send, by the signal's name")
        parser.add_argument("--team", default="", help="the team that the runs belong to (default: the agent's)")
        parser.add_argument("--yes", action="store_true", help="really perform the effects")

    def handle(self, *args: Any, **options: Any) -> None:
        """Print the warning, run the drill, and print the findings."""
        try:
            known = registry.agent_named(options["name"])
            self.consent(known, yes=options["yes"])
            self.drill(known, options)
        except InputRefused as error:
            raise CommandError(describe_refusal("input", error)) from error
        except (AgentError, ValueRefused) as error:
            raise CommandError(str(error)) from error

    def consent(self, known: RegisteredAgent, *, yes: bool) -> None:
        """Print what a drill does to the world. Raises CommandError where effects need --yes."""
        for line in report.warning(known.spec):
            self.stdout.write(line)
        if not yes and any(step.kind == "effect" for step in known.spec.steps):
            raise CommandError("Nothing was run. Add --yes to really perform the effects.")

    def drill(self, known: RegisteredAgent, options: dict[str, Any]) -> None:
        """Check the arguments and run the drill in a temporary folder."""
        [input, *others] = RunAgent().inputs(known.agent, [options["input"]])
        if others:
            raise CommandError(f"A drill takes one input; there are {len(others) + 1} in {options['input']}.")
        validate_input(known.agent.State, input)
        config = parse_json(options["config"])
        environment.current(known.agent, config)
        drilled = children.drill_version_of(known)
        children.warm(drilled, *children.others(known.spec.agent))
        answers = replace(Answers.read(options["answer"]), signals=read_signals(options["signals"]))
        wanted = options["team"] or known.agent.team
        people, team = done_in_child(drilled, lambda: _cast(options["people"], wanted))
        with tempfile.TemporaryDirectory(prefix="drill-") as scratch:
            self.exercise(Exercise(drilled, input, team, replace(answers, people=people), Path(scratch), config))

    def exercise(self, exercise: Exercise) -> None:
        """Run the undisturbed runs and the kills, and print the report. Raises CommandError for a step at fault."""
        undisturbed = exercise.undisturbed()
        count = len(undisturbed.targets) * len(MOMENTS)
        self.stdout.write(f"{len(undisturbed.targets)} steps; killing {count} workers.\n")
        self.stdout.flush()
        kills = list(exercise.kills(undisturbed))
        found = [*report.findings(kills, undisturbed), *report.aftermath(exercise.fates, exercise.problems)]
        for line in [*report.table(kills), "", *found]:
            self.stdout.write(line)
        names = report.culprits(kills, undisturbed.unsteady)
        if names or undisturbed.unsteady:
            raise CommandError(f"Not restartable: {', '.join(names) or 'the run'}.")
        self.stdout.write("Restartable at every step.")


def _cast(usernames: list[str], team: str) -> tuple[tuple[int, ...], int]:
    """Return the ids of the people who decide, and of the team. Raises AgentError."""
    found = dict(User.objects.filter(username__in=usernames).values_list("username", "pk"))
    missing = [name for name in usernames if name not in found]
    if missing:
        raise AgentError(f"There is no user named {', '.join(missing)}.")
    first = User.objects.get(pk=found[usernames[0]]) if usernames else None
    try:
        return tuple(found[name] for name in usernames), team_named(team, first).pk
    except CommandError as error:
        raise AgentError(str(error)) from error
