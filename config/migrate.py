"""`python -m config.migrate`: migrate as the owner; the application's role is granted what it may do with it.

DATABASE_OWNER_URL names the owner, DATABASE_URL the application's role. Where only DATABASE_URL is set the
two are one role, which then could rewrite its own audit: fit for a trial, not for production.
"""

from __future__ import annotations

import os
import sys
from urllib.parse import unquote, urlsplit


def main() -> int:
    """Migrate; return the exit code."""
    application = os.environ.get("DATABASE_URL", "")
    owner = os.environ.get("DATABASE_OWNER_URL") or application
    os.environ["DATABASE_URL"] = owner
    os.environ["HOLDPOINT_DB_APP_ROLE"] = unquote(urlsplit(application).username or "")
    os.environ["HOLDPOINT_STATEMENT_TIMEOUT"] = os.environ["HOLDPOINT_TRANSACTION_TIMEOUT"] = "0"
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

    import django
    from django.core.management import call_command

    django.setup()
    call_command("migrate", interactive=False, verbosity=1 if "-v" in sys.argv else 0)
    return 0


if __name__ == "__main__":
    sys.exit(main())
