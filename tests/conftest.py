"""Real servers for every test, and the processes, browsers and people that a test asks for."""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import django
import pytest
from django.conf import settings
from django.db.models import Max
from django.test import override_settings

from tests.harness import examples
from tests.harness.session import BYTECODE, Session, quick_folder

SESSION = Session()
os.environ.update(SESSION.environment)
os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(quick_folder()))  # of tmp_path
# This process read its environment before; pytest keeps the test modules that it rewrites in the same place.
sys.pycache_prefix, sys.dont_write_bytecode = str(BYTECODE), False
# Playwright's synchronous interface keeps an event loop in this thread, which Django would refuse to query
# from; the processes that the tests start do not inherit this.
os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "1"
# A shell has what it starts in the background ignore Ctrl-C, and so would all that the tests start.
signal.signal(signal.SIGINT, signal.default_int_handler)

from tests.harness import chromium, services, waiting, webs  # noqa: E402 - these read the environment set above

if TYPE_CHECKING:
    from django.contrib.auth.models import User
    from django.db.models import Model
    from playwright.sync_api import Browser, BrowserContext, Page
    from pytest_django.plugin import DjangoDbBlocker

Starter = Callable[..., services.Service]
SharedWeb = Callable[..., str]
CHROMIUM = chromium.Shared()
SELDOM = (50_000, 20, 100)  # of gc.set_threshold


def pytest_configure(config: pytest.Config) -> None:
    """Start what the whole session shares, once, before any worker; read the settings before any test is collected."""
    gc.set_threshold(*SELDOM)
    if SESSION.is_owner and not config.option.collectonly:
        SESSION.start_shared()
    if config.option.markexpr == "long":
        examples.try_all()
    if settings.configured:
        pytest.exit("Unset DJANGO_SETTINGS_MODULE: these tests bring servers of their own.", returncode=4)
    # Not for longer: the workers inherit the environment, and pytest-django would read the settings with it
    # before their own URLs are known.
    os.environ["DJANGO_SETTINGS_MODULE"] = "config.settings"
    django.setup()
    del os.environ["DJANGO_SETTINGS_MODULE"]
    from tests.harness import vouched_policies

    vouched_policies.install()


def pytest_collection_finish() -> None:
    """Look for garbage seldom, and never again among what is there for good: it took an eighth of a processor."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(tryfirst=True)
def pytest_itemcollected(item: pytest.Item) -> None:
    """Where all examples are tried, take the tests that make some up."""
    if item.get_closest_marker("django_db"):  # it would make a database beside, which the servers do not read
        raise pytest.UsageError(f"{item.nodeid} needs no mark django_db: every test has the session's database.")
    made_up = getattr(getattr(item, "obj", None), "is_hypothesis_test", False) or item.get_closest_marker("examples")
    if made_up and examples.trying_all():
        item.add_marker(pytest.mark.long)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put what needs the shared web server last, and of that what needs the browser: each is started once.

    What reads all of its database comes first, while there is little in it.
    """
    items.sort(key=lambda item: [_needs(item, "browser"), _needs(item, "shared_web"), not _reads_all(item)])


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(nextitem: pytest.Item | None) -> None:
    """Close the browser before a test that asks for none: its event loop would be in the way of a test's own."""
    if nextitem is None or not _needs(nextitem, "browser"):
        CHROMIUM.close()


def _reads_all(item: pytest.Item) -> bool:
    return item.get_closest_marker("whole_database") is not None


def _needs(item: pytest.Item, fixture: str) -> bool:
    return fixture in getattr(item, "fixturenames", ())


def pytest_unconfigure() -> None:
    """Stop what the whole session shared."""
    if SESSION.is_owner:
        SESSION.stop_shared()


@pytest.fixture(scope="session", autouse=True)
def servers(django_db_blocker: DjangoDbBlocker) -> Iterator[Session]:
    """Give this process its database and Redis, and let every test use them without a mark."""
    from django.db import connections

    SESSION.start_own()
    with django_db_blocker.unblock():
        yield SESSION
        for connection in connections.all(initialized_only=True):
            connection.close()
            if hasattr(connection, "close_pool"):
                connection.close_pool()
    services.WARM.close()
    SESSION.stop_own()


@pytest.fixture(scope="module", autouse=True)
def left_verified(servers: Session) -> Iterator[None]:
    """Verify the rows that a module's tests leave, so that the module is at fault and no later whole verification."""
    from checkpoints.audit import covered_rows

    before = {cover.name: _newest(cover.model) for cover in covered_rows.covers.values()}
    yield
    for cover in covered_rows.covers.values():
        left = range(before[cover.name] + 1, _newest(cover.model) + 1)
        problems = cover.check(left)
        assert problems == [], f"this module's tests leave rows that do not verify: {problems}"


def _newest(model: type[Model]) -> int:
    return model._default_manager.aggregate(newest=Max("pk"))["newest"] or 0


@pytest.fixture(autouse=True)
def quick_passwords(request: pytest.FixtureRequest) -> Iterator[None]:
    """Hash passwords quickly in this process, unless a web server reads them: it would hash them anew when it does.

    That ends the sessions of whoever only confirmed a password.
    """
    if {"shared_web", "start_service"} & set(request.fixturenames):
        yield
        return
    with override_settings(PASSWORD_HASHERS=["tests.harness.passwords.Quick"]):
        yield


@pytest.fixture
def redis_url() -> str:
    """Return the URL of this process's own Redis, which a test may flush."""
    return SESSION.redis.url


@pytest.fixture
def start_service(tmp_path: Path) -> Iterator[Starter]:
    """Return start(name, command, env={}) -> Service; whatever still runs at the end is killed."""
    started: list[services.Service] = []

    def start(name: str, command: list[str], env: dict[str, str] | None = None) -> services.Service:
        started.append(services.Service(name, command, tmp_path, env or {}))
        return started[-1]

    yield start
    for service in reversed(started):
        service.kill()


@pytest.fixture
def celery_worker(start_service: Starter) -> Starter:
    """Return worker(*arguments, env={}, ready=True) -> Service: a real `manage.py worker`."""

    def worker(*arguments: str, env: dict[str, str] | None = None, ready: bool = True) -> services.Service:
        service = start_service("worker", services.manage("worker", *arguments), env)
        if ready:
            service.says(r"(?m)\bready\b")
        return service

    return worker


@pytest.fixture
def sweeper(start_service: Starter) -> Starter:
    """Return sweeper(*arguments, env={}) -> Service: a real `manage.py sweeper`."""

    def start(*arguments: str, env: dict[str, str] | None = None) -> services.Service:
        service = start_service("sweeper", services.manage("sweeper", *arguments), env)
        service.says(r"\bready\b")
        return service

    return start


@pytest.fixture
def start_web(start_service: Starter) -> Callable[..., tuple[services.Service, str]]:
    """Return web(env={}) -> (Service, base URL): a real uvicorn on a free port, answering."""

    def start(env: dict[str, str] | None = None) -> tuple[services.Service, str]:
        port = services.free_port()
        base = f"http://127.0.0.1:{port}"
        service = start_service("web", services.web_command(port), {"HOLDPOINT_ORIGINS": base} | (env or {}))
        services.wait_for_http(service, f"{base}/healthz")
        return service, base

    return start


@pytest.fixture(scope="session")
def shared_web(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SharedWeb]:
    """Return shared_web(env={}) -> base URL of a real web server that other tests use too: none may stop it."""
    shared = webs.Shared(tmp_path_factory)
    yield shared.base
    shared.close()


@pytest.fixture
def web(shared_web: SharedWeb) -> str:
    """Return the base URL of a real web server that the tests of this process share."""
    return shared_web()


@pytest.fixture
def browser() -> Iterator[Browser]:
    """Return a real Chromium that the tests of this process share; the profiles that a test makes in it are closed."""
    running = CHROMIUM.open()
    yield running
    for context in running.contexts:
        context.close()


@pytest.fixture
def new_context(browser: Browser, web: str) -> Callable[..., BrowserContext]:
    """Return new_context(user=None, **options) -> BrowserContext: a profile, signed in where a user is given."""

    def new(user: User | None = None, **options: object) -> BrowserContext:
        context = browser.new_context(**({"base_url": web, "viewport": {"width": 1440, "height": 900}} | options))  # type: ignore[arg-type]
        context.set_default_timeout(waiting.PATIENCE * 1000)
        if user is not None:
            sign_in(context, user, web)
        return context

    return new


@pytest.fixture
def new_page(new_context: Callable[..., BrowserContext]) -> Callable[..., Page]:
    """Return new_page(user=None, **options) -> Page in a profile of its own; options are Playwright's for a context."""

    def new(user: User | None = None, **options: object) -> Page:
        return new_context(user, **options).new_page()

    return new


def sign_in(context: BrowserContext, user: User, base: str) -> None:
    """Put a session of `user` into `context`, without the sign-in page."""
    from tests.harness.signed_in_clients import session_of

    context.add_cookies([{"name": "sessionid", "value": session_of(user), "url": base}])


@pytest.fixture
def as_user(web: str) -> Callable[[BrowserContext, User], None]:
    """Return as_user(context, user): sign a browser's profile in."""
    return lambda context, user: sign_in(context, user, web)
