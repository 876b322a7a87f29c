"""`manage.py run_agent NAME --input FILE|JSON`: starts runs, and watches them with --wait."""

from __future__ import annotations

import time
from datetime import timedelta
from pathlib import Path
from typing import Any

from django.conf import settings
from django.contrib.auth.models import Group, User
from django.core.management.base import BaseCommand, CommandError, CommandParser

from agents.definition import environment, registry
from agents.errors import AgentError, ConfigRefused, InputRefused
from agents.runs.start import start_run, validate_input
from agents.serving import missing_workers
from approvals.models import Gate
from approvals.policy.rules import missing_policy
from checkpoints import actors
from checkpoints.access.permissions import own_teams
from checkpoints.errors import PlanChanged, ValueRefused
from checkpoints.models import Checkpoint, Run
from checkpoints.values.canonical_json import parse_json

POLL, LOOK = 0.1, 2.0  # seconds between two looks at the run, and at whether a worker serves it


class Command(BaseCommand):
    """Starts one run per input and prints its address."""

    help = "Starts an agent on an input: JSON, a file, or a folder that the agent can read."
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the agent's name and its input; see --help."""
        parser.add_argument("name", help="the agent's name")
        parser.add_argument("--input", required=True, nargs="+", help="JSON, or files or folders")
        parser.add_argument("--config", default="{}", help="JSON: what differs from the agent's default configuration")
        parser.add_argument(
            "--wait", action="store_true", help="show each step as it is saved, until the run waits or ends"
        )
        parser.add_argument("--team", default="", help="the team that the runs belong to (default: the agent's)")
        parser.add_argument("--as", dest="user", default="", help="the username of the person who starts them")
        parser.add_argument("--within", type=float, help="seconds after which it is cancelled if it still lives")
        parser.add_argument(
            "--priority", type=int, choices=range(10), help="from 0, the most urgent, to 9 (default: the agent's)"
        )
        parser.add_argument("--key", default="", help="idempotency key: the same key gives the same run")

    def handle(self, *args: Any, **options: Any) -> None:
        """Start the runs; check every input first, so that nothing is started where one of them is wrong."""
        try:
            known = registry.agent_named(options["name"])
            if word := known.agent.lacks():
                self.stderr.write(self.style.WARNING(word))
            inputs = self.inputs(known.agent, options["input"])
            for item in inputs:
                validate_input(known.agent.State, item)
            options["config"] = parse_json(options["config"])
            environment.current(known.agent, options["config"])
            runs = [self.start(known, item, index, len(inputs), options) for index, item in enumerate(inputs)]
            for word in missing_policy.missing_for(known.spec, team_id=runs[0].team_id, team=runs[0].team.name):
                self.stderr.write(self.style.WARNING(word))
        except ConfigRefused as error:
            raise CommandError(describe_refusal("configuration", error)) from error
        except InputRefused as error:
            raise CommandError(describe_refusal("input", error)) from error
        except (AgentError, PlanChanged, ValueRefused) as error:
            raise CommandError(str(error)) from error
        if options["wait"]:
            for run in runs:
                self.watch(run)
        if any(run.status == Run.Status.FAILED for run in runs):
            raise CommandError("At least one run failed.")

    def inputs(self, agent: Any, given: list[str]) -> list[dict[str, Any]]:
        """Return the inputs that the arguments name, in order."""
        found: list[dict[str, Any]] = []
        for word in given:
            path = Path(word)
            if word.lstrip().startswith(("{", "[")):
                found += _several(parse_json(word))
            elif not path.exists():
                raise CommandError(f"{word} is neither JSON nor a file or folder that exists.")
            elif path.is_file() and path.suffix == ".json":
                found += _several(parse_json(path.read_bytes()))
            else:
                found += agent.inputs_from(path)
        if not found:
            raise CommandError(f"{', '.join(given)} holds no input.")
        return found

    def start(self, known: Any, input: dict[str, Any], index: int, count: int, options: dict[str, Any]) -> Run:
        """Start one run and print its address."""
        user = _user(options["user"])
        key = options["key"] and (f"{options['key']}/{index}" if count > 1 else options["key"])
        run = start_run(
            known.spec.agent,
            input,
            by=actors.of_user(user) if user else actors.SYSTEM,
            team=team_named(options["team"] or known.agent.team, user),
            started_by=user,
            key=key or None,
            config=options["config"],
            within=None if options["within"] is None else timedelta(seconds=options["within"]),
            priority=options["priority"],
        )
        self.stdout.write(f"{run} {run.title}: {base_url()}/runs/{run.pk}/")
        return run

    def watch(self, run: Run) -> None:
        """Print the run's steps as they are saved, until it waits for a person or has ended."""
        seen, waits, look = 0, "", 0.0
        while True:
            run.refresh_from_db()
            for place in Checkpoint.objects.filter(run=run, seq__gt=seen).defer("payload").order_by("seq"):
                seen = place.seq
                took = f"{place.took_us / 1000:.0f} ms"
                self.stdout.write(f"{run}   {place.seq:>3}  {place.kind:<8} {place.step}  ({took})")
            if time.monotonic() >= look:
                look, before, waits = time.monotonic() + LOOK, waits, missing_workers.describe_idle(run)
                if waits and waits != before:
                    self.stdout.write(self.style.WARNING(f"{run} waits: {waits}"))
            self.stdout.flush()
            if run.status == Run.Status.WAITING or run.status not in Run.LIVE:
                break
            time.sleep(POLL)
        self.stdout.write(f"{run} is {run.status}{f': {run.reason}' if run.reason else ''}")
        for gate in Gate.objects.open().filter(run=run):
            self.stdout.write(f"{run} asks: {base_url()}/gates/{gate.pk}/")


def base_url() -> str:
    """Return the public address of this server."""
    return str(settings.HOLDPOINT_ORIGINS[0]).rstrip("/")


def describe_refusal(what: str, error: InputRefused) -> str:
    """Return the message of a refusal: one line for each fault, with its place."""
    return "\n".join([f"The {what} was refused:", *(f"  {e['pointer'] or '/'}: {e['message']}" for e in error.errors)])


def _several(value: Any) -> list[dict[str, Any]]:
    return value if isinstance(value, list) else [value]


def _user(username: str) -> User | None:
    user = User.objects.filter(username=username).first()
    if username and user is None:
        raise CommandError(f"There is no user named {username}.")
    return user


def team_named(name: str, user: User | None) -> Group:
    """Return the team of that name; without one the user's only team. Raises CommandError."""
    found = Group.objects.filter(name=name) if name else own_teams(user) if user else Group.objects.all()
    teams = list(found[:2])
    if len(teams) == 1:
        return teams[0]
    if name:
        raise CommandError(
            f"There is no team named {name}; known: {known_teams()}. Give one with --team NAME, or make it in the "
            "administration: Teams, Add."
        )
    raise CommandError(
        f"Say which team the run belongs to: --team NAME, or `team` in the class; known: {known_teams()}."
    )


def known_teams() -> str:
    """List the names of all teams, for a message."""
    return ", ".join(Group.objects.order_by("name").values_list("name", flat=True)) or "none"
