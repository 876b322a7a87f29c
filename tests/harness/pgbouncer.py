"""A real PgBouncer before the tests' PostgreSQL, with its defaults but for the mode and for its tries to connect."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import quote

from config.local.process import spawn_process, stop_process, tie_to_parent, unprivileged_account
from config.local.servers import APPLICATION, DATABASE, Postgres
from tests.harness.chromium import tool
from tests.harness.session import Session

PORT = 6432  # of its socket


@contextmanager
def pooler(session: Session, server: Postgres, mode: str) -> Iterator[str]:
    """Run one in `mode` "session" or "transaction"; yield the URL of the application's database through it."""
    folder, account = session.folder / f"pooler-{mode}", unprivileged_account()
    folder.mkdir(mode=0o700)
    described = f"host={server.sockets} dbname={DATABASE} user={APPLICATION}"
    bouncer = {"pool_mode": mode, "auth_type": "any", "unix_socket_dir": folder, "listen_port": PORT}
    bouncer["server_login_retry"] = 1  # seconds until it tries a server again that was away
    lines = ["[databases]", f"{DATABASE} = {described}", "[pgbouncer]", *(f"{k} = {v}" for k, v in bouncer.items())]
    path = folder / "pgbouncer.ini"
    path.write_text("\n".join(lines) + "\n")
    if account is not None:
        for each in (folder, path):
            os.chown(each, account.pw_uid, account.pw_gid)
    command = tie_to_parent([tool("pgbouncer"), str(path)], account=account, needs=[folder])
    process = spawn_process(command, out=session.log(f"pooler-{mode}"), cwd=folder)
    try:
        yield f"postgres://{APPLICATION}@/{DATABASE}?host={quote(str(folder))}&port={PORT}"
    finally:
        stop_process(process, by=signal.SIGINT, within=10)
        shutil.rmtree(folder)
