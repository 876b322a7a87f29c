"""`manage.py agents`: lists the agents of this installation, and why others cannot be served."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from agents.definition import registry
from agents.definition.upcast import version_key


class Command(BaseCommand):
    """Lists every agent version by name. Exit code 1 where one is not served."""

    help = (
        "Lists the agents of HOLDPOINT_AGENTS. Names those that cannot be imported, used or served, and says what to "
        "do."
    )
    requires_system_checks = []

    def handle(self, *args: Any, **options: Any) -> None:
        """Print the agents, then a sentence for each fault."""
        known = sorted(registry.agents(), key=lambda key: (key[0], version_key(key[1])))
        for name, version in known:
            agent = registry.agents()[name, version].agent
            team = f", team {agent.team}" if agent.team else ""
            self.stdout.write(f"{name} {version}  ({agent.__module__}.{agent.__name__}{team})")
        faults, changed = registry.faults(), registry.changed()
        for sentence in changed:
            self.stderr.write(sentence)
        if faults or (changed and not settings.HOLDPOINT_DEVELOPMENT):
            raise CommandError("\n".join(faults) or "Changed agents are not served.")
