"""`python -m config.migrate`: migrates as the owner, and grants the application's role its rights.

DATABASE_OWNER_URL names the owner, DATABASE_URL the application's role. Where only DATABASE_URL is set the
two are one role, which then could rewrite its own audit: fit for a trial, not for production.

The application may go on meanwhile. A statement that waits for a table's lock blocks all that come after it, so none
waits longer than LOCK_TIMEOUT; a migration that could not get its lock, or was in a deadlock, is tried again, for
longer than any transaction of the application lasts. Work done before stays: of a migration with `atomic = False`,
single statements, which can be sent again.

`--finish` ends a rolling update: from then on new runs are saved in formats that only this release reads, and nothing
counts without the proofs that it writes. So it is in a new database from the start.
"""

from __future__ import annotations

import argparse
import os
import sys
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

if TYPE_CHECKING:
    from django_pg_migration_tools.management.commands.migrate_with_timeouts import RetryState

LOCK_TIMEOUT = 2.0  # seconds: what pages and workers wait at most
RETRIES = 12  # with pauses of 3 to 10 seconds: about two minutes
LOCKED = (
    f"Not migrated: at each of {{tries}} tries others kept a table locked for more than {LOCK_TIMEOUT:g} s, or there "
    "was a deadlock. What was begun can be run again. End the long transactions (pg_stat_activity, by xact_start) and "
    "run this again."
)
BUSY = "Not migrated: another process migrates this database now."


def main() -> int:
    """Migrate; return the exit code: 1, with one sentence, where locks of others prevent it."""
    options = argparse.ArgumentParser(prog="config.migrate")
    options.add_argument("-v", action="store_true", help="say what is applied")
    options.add_argument("--retries", type=int, default=RETRIES, help="how often to try again for a lock")
    options.add_argument("--finish", action="store_true", help="use the newest formats; once no old process is left")
    chosen = options.parse_args()
    application = os.environ.get("DATABASE_URL", "")
    owner = os.environ.get("DATABASE_OWNER_URL") or application
    os.environ["DATABASE_URL"] = owner
    os.environ["HOLDPOINT_DB_APP_ROLE"] = unquote(urlsplit(application).username or "")
    os.environ["HOLDPOINT_STATEMENT_TIMEOUT"] = os.environ["HOLDPOINT_TRANSACTION_TIMEOUT"] = "0"
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

    import django
    from django.core.management import call_command
    from django_pg_migration_tools.management.commands import migrate_with_timeouts as patiently

    django.setup()
    from approvals.gates import closing
    from approvals.models import former_deliveries, versions
    from checkpoints.audit import covered_rows
    from checkpoints.models import Event
    from checkpoints.postgresql import fitness, migrating
    from checkpoints.retention import stray_artifacts

    if unfit := fitness.fault(migrating=True):
        return refuse(unfit)
    try:
        call_command(
            migrating.Command(),
            interactive=False,
            verbosity=int(chosen.v),
            lock_timeout_in_ms=int(LOCK_TIMEOUT * 1000),
            lock_timeout_max_retries=chosen.retries,
            retry_callback_path="config.migrate.say_again",
        )
    except patiently.MaximumRetriesReached:
        return refuse(LOCKED.format(tries=chosen.retries + 1))
    except patiently.LockAlreadyAcquired:
        return refuse(BUSY)
    from_now_on = chosen.finish or not Event.objects.exists()
    versions.adopt(finish=from_now_on)
    covered_rows.require_proofs(finish=from_now_on)
    stray_artifacts.mark_files(again=chosen.finish)
    closing.fill_in()
    if chosen.finish:
        former_deliveries.move()
        migrating.use_newest_codec()
    return 0


def say_again(state: RetryState) -> None:
    """Print that a lock could not be taken, or not without a deadlock."""
    sys.stderr.write(
        f"A table is locked by others, or there was a deadlock; that was try {state.lock_timeouts_count}.\n"
    )


def refuse(sentence: str) -> int:
    """Print why nothing more was migrated; return the exit code."""
    sys.stderr.write(f"{sentence}\n")
    return 1


if __name__ == "__main__":
    sys.exit(main())
