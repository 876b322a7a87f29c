"""The documents, the services, the lists of packages and the settings agree with the code; junk in them is refused."""

from __future__ import annotations

import os
import re
import shlex
import sys
import tomllib
from functools import cache
from importlib.util import find_spec

import pytest
import yaml
from django.core.management import get_commands, load_command_class
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from config.environment import EnvironmentReader
from config.local.attach import needs_nothing
from docs.settings_page import NOT_DEPLOYED, OF_EACH, list_settings, write_example, write_page
from tests.harness.services import run
from tests.harness.session import ROOT

COMPOSE = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
SERVICES = {"postgres", "redis", "migrate", "web", "worker", "beat", "sweeper", "sandbox"}
OPERATORS_PAGES = [f"docs/{page}.md" for page in ("install", "run", "watch", "restore", "reliability", "accounts")]


def targets() -> set[str]:
    return set(re.findall(r"(?m)^([a-z-]+):", (ROOT / "Makefile").read_text()))


def test_every_command_of_the_readme_and_the_operators_pages_exists_and_takes_the_arguments_that_they_show() -> None:
    for document in ("README.md", "docs/agents.md", "docs/runs.md", "docs/testing.md", *OPERATORS_PAGES):
        text = (ROOT / document).read_text()
        assert set(re.findall(r"`make ([a-z-]+)", text)) <= targets(), document
        assert set(re.findall(r"manage\.py ([a-z_]+)", text)) <= set(get_commands()), document
    for page in OPERATORS_PAGES:
        shown = re.findall(r"manage\.py ([a-z_]+[^`\n#|;]*)", (ROOT / page).read_text())
        for name, *arguments in map(shlex.split, shown):
            if "…" not in arguments:
                load_command_class(get_commands()[name], name).create_parser("manage.py", name).parse_args(arguments)
        assert shown or page == "docs/watch.md"


def test_the_python_that_is_asked_for_is_the_oldest_that_installs_and_the_lists_are_for_all_from_it_on() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    oldest = re.search(r"OLDEST = \((\d+), (\d+)\)", (ROOT / "config" / "local" / "install.py").read_text())
    assert oldest is not None
    assert project["requires-python"] == f">={oldest[1]}.{oldest[2]}"
    assert f"--universal --python-version {oldest[1]}.{oldest[2]} " in (ROOT / "Makefile").read_text()


def test_each_service_runs_a_command_that_the_code_has_as_an_ordinary_user_and_is_checked() -> None:
    assert set(COMPOSE["services"]) == SERVICES
    assert re.search(r"(?m)^USER holdpoint$", (ROOT / "Dockerfile").read_text())
    asks = ["CMD", "python", "-IS", "config/health/probe.py"]
    for name in SERVICES:
        service = COMPOSE["services"][name]
        assert name == "migrate" or service["healthcheck"]["test"], name
        if name in ("postgres", "redis"):
            continue
        command = service["command"]
        assert command[0] == "python"
        if command[1] == "manage.py":
            assert command[2] in get_commands()
        else:
            assert command[1] == "-m"
            assert find_spec(command[2]) is not None
        assert service.get("healthcheck", {}).get("test", asks)[:4] == asks
        assert set(service["environment"]) <= described()
        assert service.get("env_file", []) in (".env", [])
        assert service["cap_drop"] == ["ALL"]
        assert not {"privileged", "user"} & set(service), "the user is the image's own"
    text = (ROOT / "docker-compose.yml").read_text()
    assert set(re.findall(r"\$\{([A-Z_]+)", text)) <= described()
    for secret in ("HOLDPOINT_SEAL_KEY", "DATABASE_URL", "DATABASE_OWNER_URL", "POSTGRES_PASSWORD"):
        assert f"${{{secret}:?}}" in text, f"{secret} must have no default"


def test_the_databases_first_start_makes_both_roles() -> None:
    """Runs the script's own reading of the URLs, with a psql that shows what it was given."""
    script = ROOT / "config" / "docker" / "roles.sh"
    shown = 'psql() { printf "%s\\n" "$@"; cat; }; export -f psql; bash "$0"'
    owner, app = "postgres://boss:k1@postgres:5432/hp?sslmode=disable", "postgres://app:k2@postgres/hp"
    done = run("bash", "-c", shown, str(script), env={"DATABASE_OWNER_URL": owner, "DATABASE_URL": app})
    given = {"owner=boss", "owner_password=k1", "app=app", "app_password=k2", "database=hp"}
    assert given <= set(done.stdout.splitlines()), done.stderr


@pytest.mark.parametrize(
    ("command", "alone"),
    [
        ("audit verify --since 3 --json", False),
        ("audit verify --anchors seals.jsonl", False),
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


@pytest.mark.parametrize("name", KEPT)
def test_a_list_holds_hashed_pins_of_every_direct_requirement_and_nothing_of_one_machine(name: str) -> None:
    text, pins = (ROOT / f"{name}.txt").read_text(), installed_from(name)
    left = [line for line in ENTRY.sub("", text).splitlines() if not re.fullmatch(r" *#.*", line)]
    assert left == [], "neither a pin with its hashes nor a comment"
    assert not re.search(r"://|(?m:[ =]/)", text), "an address or a path"
    for package, version in direct(name).items():
        assert pins.get(canonicalize_name(package)) == version, f"run `make pins`: {name}.txt lacks {package} {version}"


def test_every_direct_requirement_is_explained_and_nothing_that_is_none() -> None:
    text = (ROOT / "docs" / "dependencies.md").read_text()
    rows = re.findall(r"(?m)^\| (?!package )(\S[^|]*) \| \S[^|]* \| \S.* \|$", text)
    assert sorted(name for row in rows for name in row.split(", ")) == sorted(direct("requirements-dev"))


GOOD = {
    "HOLDPOINT_SECRET_KEY": "a long and random value for a test of settings: q7Wd2-Zr9Lx4-Vb8Kt1",
    "DATABASE_URL": "postgres://holdpoint_app:secret@db.example/holdpoint",
    "REDIS_URL": "redis://redis.example:6379/0",
    "HOLDPOINT_ALLOWED_HOSTS": "holdpoint.example",
    "HOLDPOINT_ORIGINS": "https://holdpoint.example",
}


def python(code: str, **variables: str) -> tuple[int, str]:
    """Run `code` with nothing but `variables` set; return the exit code and what it said."""
    bare = {name: "" for name in os.environ if name.startswith(("HOLDPOINT_", "DATABASE_", "REDIS_", "DJANGO_"))}
    kept = {name: value for name, value in (bare | variables).items() if value or not name.startswith("HOLDPOINT_")}
    clean = {name: value for name, value in os.environ.items() if name not in bare}
    done = run(sys.executable, "-c", code, env=clean | kept, alone=True)
    return done.returncode, (done.stdout + done.stderr).strip()


def of_deployments() -> list[str]:
    return re.findall(r"(?m)^([A-Z_]+)=", (ROOT / ".env.example").read_text())


def of_the_rest() -> list[str]:
    """What only `make run`, examples or tests read."""
    return [setting.name for setting in list_settings() if setting.section == NOT_DEPLOYED]


def described() -> set[str]:
    return {*of_deployments(), *of_the_rest()}


def test_every_variable_that_is_read_is_described_in_one_place_and_none_besides() -> None:
    """Whoever deployed read through the settings of `make run`, the examples and the tests."""
    code, said = python("from config.settings import env; print(' '.join(env.known))", **GOOD)
    assert code == 0, said
    assert sorted([*of_deployments(), *of_the_rest()]) == sorted(said.split())
    ours = [setting.name for setting in list_settings() if not setting.name.startswith(OF_EACH)]
    assert sorted(ours) == sorted(said.split())


def test_the_page_and_the_example_are_as_the_code_that_declares_the_settings_has_them() -> None:
    assert (ROOT / "docs" / "settings.md").read_text() == write_page(list_settings()), "run `make generated`"
    assert (ROOT / ".env.example").read_text() == write_example(list_settings()), "run `make generated`"


def test_no_other_module_reads_a_variable_that_settings_do_not_know() -> None:
    pattern, known = re.compile(r"""environ(?:\.get\(|\[)["']([A-Z_]+)["']"""), described() | {"DJANGO_SETTINGS_MODULE"}
    for folder in ("config", "checkpoints", "approvals", "agents"):
        for path in (ROOT / folder).rglob("*.py"):
            unknown = set(pattern.findall(path.read_text())) - known
            assert not unknown, f"{path} reads {unknown}"


def test_without_any_settings_each_missing_one_is_named() -> None:
    code, said = python("import config.settings")
    assert code == 1
    assert [line.split()[0] for line in said.splitlines()] == ["HOLDPOINT_SECRET_KEY", "DATABASE_URL", "REDIS_URL"]
    assert "Traceback" not in said


JUNK = [
    ("HOLDPOINT_DEBUG", "perhaps", "HOLDPOINT_DEBUG is 'perhaps'; write 1 or 0."),
    ("HOLDPOINT_LEASE", "nan", "HOLDPOINT_LEASE is 'nan'; write a number from 0.1 to 3600."),
    ("HOLDPOINT_POOL_SIZE", "2.5", "HOLDPOINT_POOL_SIZE is '2.5'; write a whole number."),
    ("PORT", "0", "PORT is '0'; write a number from 1 to 65535."),
    ("DATABASE_URL", "mysql://root@db/x", "DATABASE_URL must start with postgres:// or postgresql://."),
    ("DATABASE_URL", "postgres://db", "DATABASE_URL names no database; write postgres://user@host/database."),
    ("HOLDPOINT_ORIGINS", "holdpoint.example", "write origins like https://holdpoint.example."),
    ("HOLDPOINT_WEBHOOKS_RETRIES", "5,soon", "HOLDPOINT_WEBHOOKS_RETRIES holds 'soon'; write numbers above 0"),
    ("FORWARDED_ALLOW_IPS", "*", "FORWARDED_ALLOW_IPS holds '*'; name your proxies"),
    ("FORWARDED_ALLOW_IPS", "10.42.0.1/16", "FORWARDED_ALLOW_IPS holds '10.42.0.1/16'; name your proxies"),
    ("HOLDPOINT_WEBHOOKS_CA", "/nowhere.pem", "write the path of a file that is there."),
    ("HOLDPOINT_SECRET_KEY", "x", "holds a key that could be guessed; make one of at least 32"),
    ("HOLDPOINT_SECRET_KEY", "change-me-to-the-output-of-openssl-rand-base64-48", "`openssl rand -base64 48`."),
    ("HOLDPOINT_OLD_SECRET_KEYS", "q7Wd2-Zr9Lx4-Vb8Kt1-q7Wd2-Zr9Lx4-Vb8Kt1,short", "holds a key"),
    ("HOLDPOINT_SEAL_KEY", "x", "HOLDPOINT_SEAL_KEY holds a key that could be guessed"),
    ("HOLDPOINT_OLD_SEAL_KEYS", "x", "HOLDPOINT_OLD_SEAL_KEYS holds a key"),
    ("DATABASE_OWNER_URL", "postgres://holdpoint_owner:change-me-too@db/x", "DATABASE_OWNER_URL still holds"),
    ("REDIS_URL", "redis://:change-me-as-well@redis/0", "REDIS_URL still holds the change-me of .env.example"),
    ("EMAIL_URL", "smtp://me:change-me@mail", "EMAIL_URL still holds"),
    ("HOLDPOINT_LOG_FORMAT", "xml", "HOLDPOINT_LOG_FORMAT is 'xml'; write one of json, text."),
    ("HOLDPOINT_LOG_LEVL", "INFO", "HOLDPOINT_LOG_LEVL is no setting; is HOLDPOINT_LOG_LEVEL meant?"),
]


@pytest.mark.parametrize("nth", range(2))
def test_each_junk_value_is_one_sentence(nth: int) -> None:
    """Of each variable the value of that place: one start reports all mistakes."""
    values: dict[str, list[tuple[str, str]]] = {}
    for name, value, sentence in JUNK:
        values.setdefault(name, []).append((value, sentence))
    tried = {name: pairs[nth] for name, pairs in values.items() if nth < len(pairs)}
    code, said = python("import config.settings", **(GOOD | {name: value for name, (value, _) in tried.items()}))
    assert code == 1
    assert len(said.splitlines()) == len(tried), said
    for name, (_, sentence) in tried.items():
        assert any(line.startswith(name) and sentence in line for line in said.splitlines()), said


def test_the_deployment_checks_pass_with_a_real_host_and_https_is_on_unless_only_this_machine_is_served() -> None:
    show = "from config.settings import HTTPS, SESSION_COOKIE_SECURE; print(HTTPS, SESSION_COOKIE_SECURE)"
    check = "from django.core.management import execute_from_command_line as go; go(['manage.py', 'check', '--deploy'])"
    done, said = python(f"{show}; {check}", DJANGO_SETTINGS_MODULE="config.settings", **GOOD)
    assert (done, said.splitlines()) == (0, ["True True", "System check identified no issues (0 silenced)."])
    assert python(show, **(GOOD | {"HOLDPOINT_ALLOWED_HOSTS": "localhost"})) == (0, "False False")


def test_urls_of_sockets_keep_their_folder_and_escapes() -> None:
    reader = EnvironmentReader({"DATABASE_URL": "postgres://an%40n:p%2Fw@/my%20db?host=/run/my%20pg"})
    read = reader.database("DATABASE_URL", required="")
    found = (read["USER"], read["PASSWORD"], read["NAME"], read["OPTIONS"])
    assert (found, reader.complaints) == (("an@n", "p/w", "my db", {"host": "/run/my pg"}), [])
    broker = EnvironmentReader.broker("unix:///run/my%20redis.sock?db=3")
    assert broker == "redis+socket:///run/my redis.sock?virtual_host=3"
    assert EnvironmentReader.broker("redis://redis:6379/1") == "redis://redis:6379/1"


def test_what_clients_and_kubernetes_are_told_by_the_environment_is_no_junk() -> None:
    """A shell in which a program had been tried out could start no stack, nor any pod beside a service of this name."""
    told = {
        "HOLDPOINT_WEB_SERVICE_HOST": "10.96.0.7", "HOLDPOINT_WEB_SERVICE_PORT_HTTP": "8000",
        "HOLDPOINT_WEB_PORT": "tcp://10.96.0.7:8000", "HOLDPOINT_WEB_PORT_8000_TCP_PROTO": "tcp",
        "HOLDPOINT_URL": "http://h", "HOLDPOINT_TOKEN": "hp_a",
    }  # fmt: skip
    assert python("import config.settings", **(GOOD | told)) == (0, "")
    code, said = python("import config.settings", **(GOOD | told | {"HOLDPOINT_POOL_SIZ": "4"}))
    assert (code, said) == (1, "HOLDPOINT_POOL_SIZ is no setting; is HOLDPOINT_POOL_SIZE meant?")
    alone = EnvironmentReader({"HOLDPOINT_WEB_PORT": "8000"})
    with pytest.raises(SystemExit, match="HOLDPOINT_WEB_PORT is no setting"):
        alone.refuse_junk()
