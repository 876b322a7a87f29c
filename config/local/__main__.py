"""`python -m config.local run [MODULE…] | reset`: the commands behind `make run` and `make reset`."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from base64 import urlsafe_b64encode
from pathlib import Path

import django

from config.local import StackRefused, attach
from config.local.authoring import Author, modules_named, serving_variables
from config.local.console import Console
from config.local.home import Home
from config.local.stack import ROOT, Stack, Stopping, any_port

PEOPLE = "ann (decides for Support and Planning), bob (on the team), mira and lena (Finance), eve (an outsider), admin"


def run(modules: list[str]) -> int:
    """Start everything, stay until asked to stop, stop everything; return the exit code.

    `modules` are agents that are being written: they are served beside the others, and reloaded when they change.
    """
    home, console = Home.chosen(ROOT), Console()
    with home.locked():
        stack = Stack(home, console, chosen_port())
        stack.listen()
        author = Author(stack, modules)
        stack.listen_for_signals()
        try:
            stack.environment = environment(stack) | serving_variables(modules, os.environ)
            author.begin()
            with console.start():
                bring_up(stack)
            tell_addresses(stack)
            stack.supervise(author.look)
        except Stopping:
            return 0
        finally:
            attach.withdraw(home)
            stack.stop()
    return 0


def chosen_port() -> int:
    """Return PORT, or 8000. Raises StackRefused where it is junk."""
    text = os.environ.get("PORT") or "8000"
    if not text.isdigit() or not 1 <= int(text) <= 65535:
        raise StackRefused(f"PORT is {text!r}; write a number from 1 to 65535.")
    return int(text)


def bring_up(stack: Stack) -> None:
    """Start servers, migrate, start the application, seed a first start."""
    refuse_junk(stack.environment)
    stack.start_servers()
    attach.publish(stack.home, stack.environment)
    stack.complete("migrate", "Bringing the tables up to date", "-m", "config.migrate", "--finish")
    collect_static(stack)
    if not os.environ.get("SANDBOX_URL"):
        port = stack.environment["SANDBOX_URL"].rpartition(":")[2]
        data = str(stack.home.path / "sandbox")
        stack.start("sandbox", "-m", "agents.examples.sandbox", "--port", port, "--data", data)
    stack.start("worker", "manage.py", "worker", within=20.0)
    stack.start("sweeper", "manage.py", "sweeper")
    stack.start("beat", "-m", "celery", "-q", "-A", "config", "beat", "--pidfile=")
    stack.start_web()
    stack.wait_for_pages(stack.check_children)
    for child in stack.children:
        stack.console.line(child.name, "is up")
    seed(stack)


def collect_static(stack: Stack) -> None:
    """Collect static files into the home folder, unless they are unchanged: so a second start is quick."""
    stamp = stack.home.path / "static-stamp"
    now = fingerprint(ROOT / "static")
    if stamp.exists() and stamp.read_text() == now:
        return
    stamp.unlink(missing_ok=True)
    stack.complete("static", "Collecting static files", "manage.py", "collectstatic", "--noinput", "--clear", "-v0")
    stamp.write_text(now)


def fingerprint(folder: Path) -> str:
    """Hash the names and contents under `folder`, and Django's version, whose admin brings files too."""
    hashed = hashlib.sha256(django.__version__.encode())
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            hashed.update(str(path.relative_to(folder)).encode() + b"\0" + path.read_bytes())
    return hashed.hexdigest()


def tell_addresses(stack: Stack) -> None:
    """Print how to use and stop the stack; where it is, and how to sign in, come last."""
    stack.console.say(
        "Ctrl-C stops everything; `make reset` wipes it\n"
        f"The payment sandbox's ledger is at {stack.environment['SANDBOX_URL']}/\n"
        f"Sign in as {PEOPLE}; the password of each is {stack.environment['HOLDPOINT_DEMO_PASSWORD']}\n"
        f"Holdpoint is at {stack.url}"
    )


def seed(stack: Stack) -> None:
    """Create the first accounts and runs, on the first start only."""
    done = stack.home.path / "seeded"
    if not done.exists():
        stack.complete("seed", "Making the first accounts and runs", "-m", "config.local.seed")
        done.touch()


def environment(stack: Stack) -> dict[str, str]:
    """Return the environment of the application's processes, with placeholders for URLs of embedded servers."""
    chosen = {
        "PYTHONUNBUFFERED": "1",
        "MALLOC_ARENA_MAX": "2",  # as in the image: what one thread frees, another uses again
        # In a container this is root, and Celery says at length that it would rather not be.
        "PYTHONWARNINGS": "ignore:You're running the worker",
        "HOLDPOINT_LOG_FORMAT": "text",
        "HOLDPOINT_SECRET_KEY": stack.home.secret("secret-key"),
        "HOLDPOINT_SEAL_KEY": stack.home.secret("seal-key"),
        "HOLDPOINT_VAPID_KEY": vapid_key(stack.home.secret("vapid-key", 32)),
        "HOLDPOINT_DEMO_PASSWORD": stack.home.secret("demo-password", 4),
        "HOLDPOINT_ORIGINS": f"http://localhost:{stack.port},http://127.0.0.1:{stack.port}",
        "DATABASE_URL": "postgres://embedded@/holdpoint",
        "REDIS_URL": "redis://embedded/0",
        "SANDBOX_URL": f"http://127.0.0.1:{any_port(stack.port + 1000)}",
    }
    fixed = {"HOLDPOINT_HOME": str(stack.home.path), "PORT": str(stack.port)}
    return chosen | {name: value for name, value in os.environ.items() if value} | fixed


def vapid_key(secret: str) -> str:
    """Write 32 random bytes as the setting takes them: nearly every such number is a private key."""
    return urlsafe_b64encode(bytes.fromhex(secret)).decode().rstrip("=")


def refuse_junk(variables: dict[str, str]) -> None:
    """Read the settings once before anything starts. Raises StackRefused with all faults."""
    read = [sys.executable, "-c", "import config.settings"]
    done = subprocess.run(read, cwd=ROOT, env=variables, capture_output=True, text=True)
    if done.returncode:
        raise StackRefused(done.stderr.strip())


def reset() -> int:
    """Delete HOLDPOINT_HOME, if it is marked as a home and no stack runs on it."""
    home = Home.chosen(ROOT)
    if not home.path.exists():
        return 0
    with home.locked(new=False):
        shutil.rmtree(home.sockets(), ignore_errors=True)
        home.delete()
    print(f"{home.path} is gone")
    return 0


def main() -> int:
    """Run the command that was named; return the exit code."""
    command, *words = sys.argv[1:] or [""]
    if command not in ("run", "reset") or (command == "reset" and words):
        print("Usage: python -m config.local run [MODULE…] | reset", file=sys.stderr)
        return 2
    try:
        return run(modules_named(words)) if command == "run" else reset()
    except StackRefused as refused:
        print(refused, file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
