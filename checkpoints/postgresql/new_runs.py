"""The format in which new runs are saved, as a fact about the database.

During a rolling update processes of two releases work side by side, and a worker that finds a row in a format it does
not know takes it for damaged and freezes the run. So a new run begins in a format that the release before reads too,
until all its processes are gone and `config.migrate --finish` is told so; a run keeps the format that it began with.
The bits for the codec of its rows (layout.payloads) are a constant in `checkpoints_new_codec()`, which every backup
contains. A database in which no run was started before has the newest at once.
"""

from __future__ import annotations

from django.db import connection

NEWEST = 4
MAKE = "FUNCTION public.checkpoints_new_codec() RETURNS integer LANGUAGE sql STABLE RETURN {}"


def use_newest() -> None:
    """Let new runs begin in the newest format; as the owner. Safe to repeat."""
    with connection.cursor() as cursor:
        cursor.execute(f"CREATE OR REPLACE {MAKE.format(NEWEST)}")
