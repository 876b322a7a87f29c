"""Who may is asked of checkpoints.access.permissions, and who is kept apart of approvals.policy.separation, alone.

The source is walked: whatever else names the tables behind permissions, asks Django for them, or compares a person with
whoever started a run, is a copy of a rule, and a copy that is forgotten is a hole.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from checkpoints.access import permissions
from tests.harness.session import ROOT

APPS = ("agents", "approvals", "checkpoints", "config")
PLACES = {Path("checkpoints/access/permissions.py"), Path("approvals/policy/separation.py")}
TABLES = re.compile(
    r"\b(auth_user_groups|auth_permission|checkpoints_right|approvals_reviewing|auth_group_permissions|auth_user_user_permissions|approvals_policy_groups"
    r"|is_superuser(?=\W*(AND|OR|THEN|IS|=|\)))|(?:started_by|asked_by)_id)\b"
)
SQL = re.compile(r"\b(SELECT|FROM|WHERE|JOIN|AND)\b|%s|\$\d")
ASKED = {
    "has_perm", "has_perms", "has_module_perms", "get_all_permissions", "get_group_permissions", "is_superuser",
    "user_permissions", "groups", "started_by_id", "asked_by_id", "with_perm", "user_set",
}  # fmt: skip
APART = {"started_by", "asked_by"}  # read to name somebody, but compared only where somebody is kept apart
IMPORTED = {
    "Right", "ReviewingTeam", "permission_required", "user_passes_test", "PermissionRequiredMixin",
    "UserPassesTestMixin",
}  # fmt: skip
FILTERS = {"filter", "exclude", "get", "aget", "Q", "When", "get_object_or_404", "get_list_or_404"}
LOOKUP = re.compile(
    r"(?:^|__)(groups|user_permissions|permissions|is_superuser|started_by|asked_by|(?:team|group)__user)(?:_id)?(?:__|$)"
)
# What holds none of these words is not worth reading.
WORDS = [*ASKED, *APART, *IMPORTED, r"permissions|(team|group)__user|\bGroup\.", TABLES.pattern]
MENTIONS = re.compile("|".join(WORDS))
OF_CHANNELS = {"self", "access", "ear"}  # whose groups are the audiences of facts

EXCEPTIONS = {
    ("approvals/admin/accounts.py", "groups"): "the page on which people are put into teams lists and compares them",
    ("approvals/admin/accounts.py", "is_superuser"): "of the account that is changed, not of who changes it",
    ("approvals/admin/accounts.py", "user_permissions"): "the page on which permissions are given",
    ("approvals/admin/teams.py", "groups"): "the page on which people are put into teams",
    ("approvals/admin/teams.py", "user_set"): "tells in an event who was put into a team",
    (
        "approvals/gates/lists/queues.py",
        "approvals_reviewing",
    ): "reads what is lent once for thousands of gates; a differential test holds it to the relation",
    ("approvals/gates/opening.py", "started_by_id"): "a word by which the search finds the gate",
    ("agents/remote/reach.py", "started_by_id"): "records whose programs work on a run beside those of who started it",
    ("agents/threads/places.py", "started_by_id"): "records whose programs write a thread beside those of who began it",
    ("approvals/gates/page/shown_gate.py", "ReviewingTeam"): "names the teams that decide, for a gate's page",
    ("approvals/gates/reading.py", "ReviewingTeam"): "reads the teams that decide, with a gate",
    ("approvals/models/__init__.py", "ReviewingTeam"): "hands the model on",
    ("approvals/models/policy.py", "approvals_reviewing"): "reads all whom one policy may ask",
    ("approvals/models/versions.py", "groups"): "writes whom people chose as reviewers",
    ("approvals/accounts/required.py", "is_superuser"): "of whom a second factor is required, whatever they may",
    ("config/sign_in/openid.py", "groups"): "puts people into teams by a provider's claims, as settings say",
    ("config/sign_in/openid.py", "is_superuser"): "of the account that an e-mail address would link, not of who acts",
    ("agents/testing/trial.py", "groups"): "makes the people of an author's tests",
    ("config/local/seed.py", "groups"): "makes the people and policies of the sample data",
    ("config/local/seed.py", "user_permissions"): "makes the people of the sample data",
    ("agents/api/programs/posted_gates.py", "started_by_id"): "whose own program asks, which the API's door has let in",
    ("agents/runs/query.py", "started_by_id"): "a filter of a list, over the teams that the reader sees",
    ("agents/templatetags/first_steps.py", "Right"): "asks whether anybody may decide yet, of an installation",
}

NAMED_BEFORE_DJANGO = {"config/local/seed.py"}


def named_in(source: str) -> set[str]:
    """Return the names by which a module asks who may, or who is kept apart, for itself."""
    return set(_named(ast.parse(source)))


def _named(tree: ast.Module) -> Iterator[str]:
    called = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and SQL.search(node.value):
            yield from (match[1] for match in TABLES.finditer(node.value))
        elif isinstance(node, ast.Attribute) and node.attr in ASKED:
            of_pattern = node.attr == "groups" and id(node) in called  # what a regular expression found
            if not of_pattern and not (isinstance(node.value, ast.Name) and node.value.id in OF_CHANNELS):
                yield node.attr
        elif isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            asked = [each for keyword in node.keywords for each in _lookups(keyword)] if name in FILTERS else []
            yield from (match[1] for each in asked if (match := LOOKUP.search(each)))
            if name in FILTERS and "user" in asked and ast.unparse(node.func).startswith("Group."):
                yield "user"
        elif isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            if not any(isinstance(each, ast.Constant) and each.value is None for each in sides):
                yield from (each.attr for each in sides if isinstance(each, ast.Attribute) and each.attr in APART)
        elif isinstance(node, ast.ImportFrom):
            yield from (each.name for each in node.names if each.name in IMPORTED)


def _lookups(keyword: ast.keyword) -> list[str]:
    """List the lookups of an argument: its name, or the names that are written out in `**{…}`."""
    if keyword.arg is not None:
        return [keyword.arg]
    keys = keyword.value.keys if isinstance(keyword.value, ast.Dict) else []
    return [each.value for each in keys if isinstance(each, ast.Constant) and isinstance(each.value, str)]


def copies() -> set[tuple[str, str]]:
    """Return (module, name) of everything that asks for itself beside the places that may."""
    found = set()
    for app in APPS:
        for path in sorted((ROOT / app).rglob("*.py")):
            module = path.relative_to(ROOT)
            if "migrations" not in module.parts and module not in PLACES and MENTIONS.search(text := path.read_text()):
                found |= {(str(module), name) for name in named_in(text)}
    return found


def test_nothing_else_asks_for_itself_and_every_exception_is_still_one() -> None:
    assert copies() == EXCEPTIONS.keys()


def test_a_permission_is_named_in_one_place() -> None:
    constants = {name: each for name, each in vars(permissions).items() if re.fullmatch("[A-Z]+_[A-Z_]+", name)}
    names = {each for each in constants.values() if isinstance(each, str)}
    written = re.compile(f"[\"']({'|'.join(map(re.escape, names))})[\"']")
    paths = [path for app in APPS for path in (ROOT / app).rglob("*.py") if "migrations" not in path.parts]
    found = {str(path.relative_to(ROOT)) for path in paths if written.search(path.read_text())}
    assert found - NAMED_BEFORE_DJANGO == {"checkpoints/access/permissions.py"}


def test_no_template_asks_for_itself() -> None:
    """Django puts `perms` into every page, whose answer is the same in every team."""
    asks = re.compile(r"{[{%][^}]*\bperms\.")
    assert [path for path in (ROOT / "templates").rglob("*.html") if asks.search(path.read_text())] == []


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ('SQL = "SELECT FROM auth_user_groups member WHERE member.user_id = $1"', "auth_user_groups"),
        ('SQL = "... FROM auth_user one WHERE one.is_superuser AND one.id = %s"', "is_superuser"),
        ('SQL = "NOT (r.started_by_id = %s)"', "started_by_id"),
        ("may = request.user.has_perm('checkpoints.view_run')", "has_perm"),
        ("teams = user.groups.all()", "groups"),
        ("if by.is_superuser: pass", "is_superuser"),
        ("refused = gate.run.started_by_id == user.pk", "started_by_id"),
        ("mine = Gate.objects.exclude(run__started_by=user)", "started_by"),
        ("seen = Group.objects.filter(permissions__codename='view_run')", "permissions"),
        ("mine = Policy.objects.filter(Q(groups__in=teams))", "groups"),
        ("mine = Run.objects.filter(**{'started_by': user, 'pk': 1})", "started_by"),
        ("mine = Gate.objects.annotate(mine=Case(When(run__started_by=user, then=1)))", "started_by"),
        ("if gate.run.started_by == request.user: pass", "started_by"),
        ("seen = Run.objects.filter(team__user=user)", "team__user"),
        ("teams = Group.objects.filter(user=user)", "user"),
        ("from django.contrib.auth.decorators import permission_required", "permission_required"),
    ],
)
def test_a_copy_is_found(source: str, name: str) -> None:
    assert named_in(source) == {name}


@pytest.mark.parametrize(
    "source",
    [
        "found.groups()",
        "heard = sorted(access.groups)",
        'FIELDS = ("username", "is_superuser", "groups")',
        "run = start_run(name, started_by=by)",
        "if run.started_by is not None: pass",
        "teams_where(user, 'checkpoints.view_run')",
    ],
)
def test_what_asks_nothing_is_let_pass(source: str) -> None:
    assert named_in(source) == set()
