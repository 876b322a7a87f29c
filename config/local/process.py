"""Starts and stops child processes that do not outlive their parent, under an account of their own if need be.

PostgreSQL refuses to run as root. If this process is root (a container), `setpriv` of util-linux runs the child under
another account and has it killed when its parent dies, in one step. If that account may not enter the folders (a clone
under /root, mode 0700), the child keeps the one capability that allows it, so that this code need not open folders that
it does not own.
"""

from __future__ import annotations

import functools
import os
import pwd
import shutil
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Protocol

from config.local import StackRefused


class ProcessHandle(Protocol):
    """The part of `subprocess.Popen` that is needed to end a process."""

    @property
    def pid(self) -> int: ...
    def poll(self) -> int | None: ...
    def wait(self, timeout: float | None = None) -> int: ...
    def send_signal(self, sig: int) -> None: ...


@functools.cache
def unprivileged_account() -> pwd.struct_passwd | None:
    """Return the account for servers that refuse root, created if missing; None where this process is not root."""
    if os.geteuid() != 0:
        return None
    name = "pgserver"
    try:
        return pwd.getpwnam(name)
    except KeyError:
        useradd = shutil.which("useradd", path="/usr/sbin:/sbin:/usr/bin")
        if useradd is None or subprocess.run([useradd, "--system", name], capture_output=True).returncode:
            raise StackRefused(
                f"PostgreSQL does not run as root and the account {name!r} could not be made: "
                "run this as an ordinary user."
            ) from None
        return pwd.getpwnam(name)


@functools.cache
def setpriv() -> str:
    """Return the path of a `setpriv` that can have a child killed with its parent, or ""."""
    path = shutil.which("setpriv") or ""
    if path and subprocess.run([path, "--pdeathsig", "TERM", "true"], capture_output=True).returncode:
        return ""
    return path


def reaches(account: pwd.struct_passwd, path: Path) -> bool:
    """Tell whether `account` may enter `path`, and all folders above it."""
    probe = ["test", "-x", str(path)]
    return subprocess.run(probe, user=account.pw_uid, group=account.pw_gid, extra_groups=[]).returncode == 0


def tie_to_parent(
    command: Sequence[str],
    *,
    dies_by: signal.Signals = signal.SIGTERM,
    account: pwd.struct_passwd | None = None,
    needs: Sequence[Path] = (),
) -> list[str]:
    """Return `command` so that it dies with its parent, as `account`, which must reach the folders `needs`.

    Raises StackRefused where the account cannot be taken or the folders cannot be reached.
    """
    tool = setpriv()
    if account is None:
        return [tool, "--pdeathsig", dies_by.name.removeprefix("SIG"), *command] if tool else list(command)
    if not tool:
        raise StackRefused(
            "PostgreSQL does not run as root and `setpriv` (util-linux) is missing: run this as an ordinary user."
        )
    options = [f"--reuid={account.pw_uid}", f"--regid={account.pw_gid}", "--clear-groups"]
    if not all(reaches(account, path) for path in needs):
        # Without the fixup bit access(2), by which initdb looks for its neighbours, would ignore the capability.
        options += ["--securebits=+no_setuid_fixup", "--inh-caps=+dac_override", "--ambient-caps=+dac_override"]
    return [tool, *options, "--pdeathsig", dies_by.name.removeprefix("SIG"), *command]


def spawn_process(
    command: Sequence[str],
    *,
    env: Mapping[str, str] | None = None,
    out: int | IO[bytes],
    cwd: Path,
    inherits: Sequence[int] = (),
) -> subprocess.Popen[bytes]:
    """Start `command` in a session of its own, so that a terminal's Ctrl-C reaches the supervisor alone."""
    return subprocess.Popen(
        list(command),
        env=env,
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        stdout=out,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        pass_fds=inherits,
    )


def stop_process(process: ProcessHandle, *, by: signal.Signals, within: float) -> bool:
    """Ask `process` to stop; kill its whole group after `within` seconds. Return whether it stopped by itself."""
    if process.poll() is None:
        process.send_signal(by)
    try:
        process.wait(within)
        gentle = True
    except subprocess.TimeoutExpired:
        gentle = False
    kill_group(process)
    process.wait()
    return gentle


def kill_group(process: ProcessHandle) -> None:
    """Kill whatever is left of the session that `spawn_process` gave to `process`."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return
