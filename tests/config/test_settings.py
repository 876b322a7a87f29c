"""Settings come from the environment, are all described, and junk among them is refused in plain words."""

from __future__ import annotations

import os
import re
import sys

import pytest

from config.environment import EnvironmentReader
from docs.settings_page import NOT_DEPLOYED, OF_EACH, list_settings, read_declarations, write_example, write_page
from tests.harness.services import run
from tests.harness.session import ROOT

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


def test_each_setting_is_explained_in_a_section() -> None:
    for setting in list_settings():
        assert re.fullmatch(r"\S.*\.", setting.words), setting.name
        assert setting.section, setting.name


def test_a_default_that_is_computed_is_said_in_words() -> None:
    source = '#: ## Who\n#: Where things lie.{}\nHOME = env.text("HOLDPOINT_HOME", str(BASE_DIR))'
    [setting] = read_declarations(source.format(" Default: here."))
    assert (setting.default, setting.words) == ("", "Where things lie. Default: here.")
    with pytest.raises(ValueError, match="The default of HOLDPOINT_HOME is computed"):
        list(read_declarations(source.format("")))


def test_a_deployment_is_shown_nothing_of_examples_and_tests() -> None:
    prefixes = ("HOLDPOINT_ASSISTANT_", "HOLDPOINT_REFUNDS_", "OPENAI_", "SANDBOX_")
    theirs = {name for name in described() if name.startswith(prefixes)}
    assert theirs | {"HOLDPOINT_DEMO_PASSWORD", "HOLDPOINT_DEVELOPMENT", "HOLDPOINT_DEBUG", "HOLDPOINT_CRASH"} == set(
        of_the_rest()
    )


def test_no_other_module_reads_a_variable_that_settings_do_not_know() -> None:
    pattern = re.compile(r"""environ(?:\.get\(|\[)["']([A-Z_]+)["']""")
    for folder in ("config", "checkpoints", "approvals", "agents"):
        for path in (ROOT / folder).rglob("*.py"):
            unknown = set(pattern.findall(path.read_text())) - described() - {"DJANGO_SETTINGS_MODULE"}
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
    ("DATABASE_URL", "postgres://db:port/x", "DATABASE_URL has a port that is not a number."),
    ("DATABASE_URL", "postgres://db", "DATABASE_URL names no database; write postgres://user@host/database."),
    ("HOLDPOINT_ORIGINS", "holdpoint.example", "write origins like https://holdpoint.example."),
    ("HOLDPOINT_ORIGINS", "https://holdpoint.example/", "write origins like https://holdpoint.example."),
    ("HOLDPOINT_WEBHOOKS_RETRIES", "5,soon", "HOLDPOINT_WEBHOOKS_RETRIES holds 'soon'; write numbers above 0"),
    ("FORWARDED_ALLOW_IPS", "*", "FORWARDED_ALLOW_IPS holds '*'; name your proxies"),
    ("FORWARDED_ALLOW_IPS", "10.0.0.1,0.0.0.0/0", "FORWARDED_ALLOW_IPS holds '0.0.0.0/0'; name your proxies"),
    ("FORWARDED_ALLOW_IPS", "::/0", "FORWARDED_ALLOW_IPS holds '::/0'; name your proxies"),
    ("FORWARDED_ALLOW_IPS", "10.42.0.1/16", "FORWARDED_ALLOW_IPS holds '10.42.0.1/16'; name your proxies"),
    ("HOLDPOINT_WEBHOOKS_CA", "/nowhere.pem", "write the path of a file that is there."),
    ("HOLDPOINT_SECRET_KEY", "x", "holds a key that could be guessed; make one of at least 32"),
    ("HOLDPOINT_SECRET_KEY", "change-me-to-the-output-of-openssl-rand-base64-48", "`openssl rand -base64 48`."),
    ("HOLDPOINT_SECRET_KEY", "ab" * 40, "holds a key that could be guessed"),
    ("HOLDPOINT_OLD_SECRET_KEYS", "q7Wd2-Zr9Lx4-Vb8Kt1-q7Wd2-Zr9Lx4-Vb8Kt1,short", "holds a key"),
    ("HOLDPOINT_SEAL_KEY", "x", "HOLDPOINT_SEAL_KEY holds a key that could be guessed"),
    ("HOLDPOINT_OLD_SEAL_KEYS", "x", "HOLDPOINT_OLD_SEAL_KEYS holds a key"),
    ("DATABASE_URL", "postgres://holdpoint_app:change-me@db/x", "DATABASE_URL still holds the change-me of"),
    ("DATABASE_OWNER_URL", "postgres://holdpoint_owner:change-me-too@db/x", "DATABASE_OWNER_URL still holds"),
    ("REDIS_URL", "redis://:change-me-as-well@redis/0", "REDIS_URL still holds the change-me of .env.example"),
    ("EMAIL_URL", "smtp://me:change-me@mail", "EMAIL_URL still holds"),
    ("HOLDPOINT_LOG_FORMAT", "xml", "HOLDPOINT_LOG_FORMAT is 'xml'; write one of json, text."),
    ("HOLDPOINT_LOG_LEVL", "INFO", "HOLDPOINT_LOG_LEVL is no setting; is HOLDPOINT_LOG_LEVEL meant?"),
]


@pytest.mark.parametrize("nth", range(4))
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


def test_a_management_command_refuses_junk_without_a_traceback() -> None:
    done = run(sys.executable, "manage.py", "check", env={"HOLDPOINT_LEASE": "soon"})
    assert (done.returncode, done.stderr) == (1, "HOLDPOINT_LEASE is 'soon'; write a number from 0.1 to 3600.\n")


def test_the_deployment_checks_pass_with_a_real_host() -> None:
    code = "from django.core.management import execute_from_command_line as go; go(['manage.py', 'check', '--deploy'])"
    done, said = python(code, DJANGO_SETTINGS_MODULE="config.settings", **GOOD)
    assert done == 0, said
    assert said == "System check identified no issues (0 silenced)."


def test_https_is_on_by_itself_unless_only_this_machine_is_served() -> None:
    show = "from config.settings import HTTPS, SESSION_COOKIE_SECURE; print(HTTPS, SESSION_COOKIE_SECURE)"
    assert python(show, **GOOD) == (0, "True True")
    assert python(show, **(GOOD | {"HOLDPOINT_ALLOWED_HOSTS": "localhost"})) == (0, "False False")


def test_a_database_url_on_a_socket_keeps_its_folder_and_escapes() -> None:
    reader = EnvironmentReader({"DATABASE_URL": "postgres://an%40n:p%2Fw@/my%20db?host=/run/my%20pg"})
    read = reader.database("DATABASE_URL", required="")
    assert (read["USER"], read["PASSWORD"], read["NAME"], read["OPTIONS"]) == (
        "an@n",
        "p/w",
        "my db",
        {"host": "/run/my pg"},
    )
    assert reader.complaints == []


def test_celery_gets_a_socket_in_its_own_spelling() -> None:
    assert (
        EnvironmentReader.broker("unix:///run/my%20redis.sock?db=3")
        == "redis+socket:///run/my redis.sock?virtual_host=3"
    )
    assert EnvironmentReader.broker("redis://redis:6379/1") == "redis://redis:6379/1"


def test_what_clients_and_kubernetes_are_told_by_the_environment_is_no_junk() -> None:
    """A shell in which a program had been tried out could start no stack, nor any pod beside a service of this name."""
    told = {
        "HOLDPOINT_WEB_SERVICE_HOST": "10.96.0.7", "HOLDPOINT_WEB_SERVICE_PORT": "8000",
        "HOLDPOINT_WEB_SERVICE_PORT_HTTP": "8000", "HOLDPOINT_WEB_PORT": "tcp://10.96.0.7:8000",
        "HOLDPOINT_WEB_PORT_8000_TCP": "tcp://10.96.0.7:8000", "HOLDPOINT_WEB_PORT_8000_TCP_PROTO": "tcp",
        "HOLDPOINT_WEB_PORT_8000_TCP_PORT": "8000", "HOLDPOINT_WEB_PORT_8000_TCP_ADDR": "10.96.0.7",
        "HOLDPOINT_URL": "http://h", "HOLDPOINT_TOKEN": "hp_a",
    }  # fmt: skip
    assert python("import config.settings", **(GOOD | told)) == (0, "")
    code, said = python("import config.settings", **(GOOD | told | {"HOLDPOINT_POOL_SIZ": "4"}))
    assert (code, said) == (1, "HOLDPOINT_POOL_SIZ is no setting; is HOLDPOINT_POOL_SIZE meant?")
    alone = EnvironmentReader({"HOLDPOINT_WEB_PORT": "8000"})
    with pytest.raises(SystemExit, match="HOLDPOINT_WEB_PORT is no setting"):
        alone.refuse_junk()
