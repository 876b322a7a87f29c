"""`python -m config.migrate`: migrate as the owner, then grant the application's role what it may do.

DATABASE_OWNER_URL names the owner, DATABASE_URL the application's role. Where only DATABASE_URL is set the
two are one role, which then could rewrite its own audit: fit for a trial, not for production.
"""

from __future__ import annotations

import os
import sys
from urllib.parse import unquote, urlsplit

import psycopg

from config import roles


def main() -> int:
    """Migrate and grant; return the exit code."""
    application = os.environ.get("DATABASE_URL", "")
    owner = os.environ.get("DATABASE_OWNER_URL") or application
    os.environ["DATABASE_URL"] = owner
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

    import django
    from django.core.management import call_command

    django.setup()
    call_command("migrate", interactive=False, verbosity=1 if "-v" in sys.argv else 0)
    role = unquote(urlsplit(application).username or "")
    if owner != application and role:
        with psycopg.connect(owner) as connection:
            roles.grant(connection, role)
    return 0


if __name__ == "__main__":
    sys.exit(main())
