"""`manage.py token USER|AGENT --scope …`: makes a token and prints it, once."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.contrib.auth.models import Group, User
from django.core.management.base import BaseCommand, CommandError, CommandParser

from agents import tokens
from agents.errors import TokenRefused
from agents.models.token import FOR_AGENTS, TokenScope
from approvals.models import Policy
from approvals.models.policy import DEFAULT
from approvals.policy import enough_reviewers
from checkpoints import actors

from .run_agent import known_teams


class Command(BaseCommand):
    """Makes a personal token for a username or, with `--owner`, an agent's token of that owner."""

    help = "Makes a token for the API and prints it. It is shown only this once; only its digest is kept."
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the token's owner, purpose, scopes and days; see --help."""
        parser.add_argument("name", metavar="USER|AGENT", help="a username, or with --owner the name of an agent")
        parser.add_argument(
            "--scope",
            action="append",
            dest="scopes",
            choices=TokenScope.values,
            help="a scope; may be repeated. Without any, an agent's token gets all scopes that an agent may have",
        )
        parser.add_argument("--owner", default="", help="the username of the owner of an agent's token")
        parser.add_argument("--team", default="", help="the only team that it reaches; an agent's token needs one")
        parser.add_argument("--policy", default="", help="the only policy under which the agent may ask (default: any)")
        parser.add_argument("--days", type=int, default=90, help="for how many days it is valid (90)")
        parser.add_argument("--for", dest="purpose", default="", help="what it is for")

    def handle(self, *args: Any, **options: Any) -> None:
        """Make the token and print it."""
        agent = options["name"] if options["owner"] else ""
        scopes = options["scopes"] or ([str(scope) for scope in FOR_AGENTS] if agent else [])
        try:
            made, sent = tokens.issue(
                owner=_user(options["owner"] or options["name"], agent=agent),
                name=options["purpose"] or options["name"],
                scopes=scopes,
                lasts=timedelta(days=options["days"]),
                team=_team(options["team"]),
                agent=agent,
                policy=options["policy"],
                by=actors.SYSTEM,
            )
        except TokenRefused as error:
            raise CommandError(str(error)) from error
        asks_under = Policy.objects.current().filter(team=made.team, name=made.policy or DEFAULT).first()
        if made.agent and asks_under and (few := enough_reviewers.lacking_besides(made.user, asks_under)):
            self.stderr.write(few)
        self.stderr.write(f"Until {made.expires_at:%Y-%m-%d}, for {', '.join(made.scopes)}. It is shown this once:")
        self.stdout.write(sent)


def _user(username: str, *, agent: str) -> User:
    found = User.objects.filter(username=username).first()
    if found is None:
        rest = " to own the token" if agent else ". If it is an agent, name the owner of its token: --owner USERNAME"
        raise CommandError(f"There is no user named {username}{rest}.")
    return found


def _team(name: str) -> Group | None:
    found = Group.objects.filter(name=name).first()
    if name and found is None:
        raise CommandError(f"There is no team named {name}; known: {known_teams()}.")
    return found
