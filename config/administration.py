"""The administration's site: its index is sorted by task, not by Django app, and some of its pages ask who one is.

Whoever comes upon a session that somebody left open could give themselves rights, or make a policy milder, so what is
listed here takes a confirmation of who one is, like a new token and a decision where the policy asks for it. What was
entered is kept on a page, whose button sends it again; nothing waits in the session, where it could be sent by somebody
else's confirmation.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from allauth.account.decorators import secure_admin_login
from django.contrib.admin import AdminSite
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import path, reverse
from django.utils import timezone

from approvals.accounts import sign_ins
from approvals.policy import step_up

# By section, the tables in the order in which they are listed, each with what it is for.
SECTIONS: dict[str, dict[str, str]] = {
    "People": {
        "auth.user": "Who signs in, and what each may do.",
        "auth.group": "Who works together, and what members may do.",
    },
    "Policies": {
        "approvals.policy": "Who must approve, how many of them, and by when.",
        "approvals.policychange": "Milder versions of policies that wait for a second person.",
        "approvals.calendar": "Working hours and days off, by which policies count time.",
        "approvals.tool": "How calls of a tool are shown, and the schema that they must fit.",
    },
    "Retention": {
        "checkpoints.retentionpolicy": "Which checkpoints are kept, and for how long.",
        "checkpoints.prune": "Dry runs, and what was deleted.",
        "checkpoints.hold": "Runs and checkpoints that must not be deleted, set by people.",
        "checkpoints.technicalhold": "Data kept for open gates, forks, names and unsettled effects.",
    },
    "Integrations": {
        "approvals.webhook": "Addresses that are told when a gate opens or closes.",
        "approvals.message": "Each message to a person or a webhook, and whether it arrived.",
        "approvals.channelstate": "Whether e-mail and the other channels reach anybody.",
        "approvals.channeladdress": "Channels of Slack and Teams in which a team's gates are told.",
        "agents.token": "API tokens of people and agents.",
    },
    "Records": {
        "checkpoints.run": "One execution of an agent each.",
        "approvals.gate": "What people were asked.",
        "approvals.decision": "What each reviewer said.",
        "approvals.outcome": "How each gate ended.",
        "approvals.proposal": "Each version of a proposal.",
        "approvals.grant": "Each permission to perform an effect.",
        "agents.effect": "What agents did outside Holdpoint, and its status.",
        "agents.failure": "Attempts of steps that failed.",
        "checkpoints.checkpoint": "Each saved state, without its content.",
        "checkpoints.plan": "The versions of each agent.",
        "checkpoints.event": "The events of the audit, as stored.",
        "checkpoints.seal": "Seals, which reveal changed events.",
        "checkpoints.verification": "Each check of the seals.",
    },
}
# What takes a confirmation when it is sent: what somebody may do or is known by, what makes asking milder, and what is
# kept. The address of an account is one: the link for a new password is sent there.
CONFIRMED = frozenset(
    {
        "auth_user_change", "auth_user_factor_removals", "auth_user_session_ends", "auth_group_add",
        "auth_group_change", "approvals_policychange_confirmations", "approvals_tool_add", "approvals_tool_change",
        "checkpoints_retentionpolicy_add", "checkpoints_retentionpolicy_change", "checkpoints_prune_applications",
        "checkpoints_hold_add", "checkpoints_hold_releases",
    }
)  # fmt: skip
# What takes it before the form is shown: a password is entered there, which no page repeats.
CONFIRMED_FIRST = frozenset({"auth_user_add", "auth_user_password_change"})
AGAIN = "_continued"  # posted with what was entered, from the page that asks for a confirmation
ELSE = "Records"  # where a table is listed that is not named above


class Site(AdminSite):
    """Holdpoint's administration."""

    site_header = site_title = "Holdpoint administration"
    index_title = "Administration"

    def admin_view(self, view: Any, cacheable: bool = False) -> Any:
        """Guard a page: its users are staff, and some pages take a confirmation of who one is."""
        return super().admin_view(_confirmed(self, view), cacheable)

    def get_urls(self) -> list[Any]:
        """Add the page on which a confirmation in a tab of its own ends."""
        return [path("confirmed/", self.admin_view(_end_confirmation), name="confirmed"), *super().get_urls()]

    def login(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """Redirect to the one sign-in, whose attempts are counted: Django's own would let passwords be guessed."""
        answer: HttpResponse = secure_admin_login(super().login)(request, extra_context)
        return answer

    def password_change(  # type: ignore[override]
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Redirect to the one page for changing passwords, whose attempts are counted and recorded."""
        return redirect("account_change_password")

    def logout(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> Any:
        """Sign out, and take the session off its person's list."""
        if isinstance(request.user, User):
            sign_ins.end_current(request, request.user)
        return super().logout(request, extra_context)

    def get_app_list(self, request: HttpRequest, app_label: str | None = None) -> list[Any]:
        """List the tables that the user may open, by section; for a single app as Django does."""
        if app_label is not None:
            return super().get_app_list(request, app_label)
        found = [model for app in self._build_app_dict(request).values() for model in app["models"]]
        by_label = {model["model"]._meta.label_lower: model for model in found}
        index = reverse("admin:index", current_app=self.name)
        sections = []
        for name, tables in SECTIONS.items():
            rest = [label for label in by_label if not section_of(label)] if name == ELSE else []
            models = [
                by_label[label] | {"purpose": tables.get(label, "")} for label in [*tables, *rest] if label in by_label
            ]
            if models:
                about = {"name": name, "app_label": name.lower(), "app_url": f"{index}#{name.lower()}"}
                sections.append(about | {"has_module_perms": True, "models": models})
        return sections


def _confirmed(site: AdminSite, view: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(view)
    def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        name, user = request.resolver_match.url_name if request.resolver_match else "", request.user
        if name not in CONFIRMED_FIRST and (name not in CONFIRMED or request.method != "POST"):
            return view(request, *args, **kwargs)
        if not isinstance(user, User) or step_up.counts(step_up.of_session(request), by=user, now=timezone.now()):
            return view(request, *args, **kwargs)
        possible = step_up.possible(user)
        if possible and name in CONFIRMED_FIRST:
            return redirect(step_up.address(request.get_full_path()))
        entered = [(name, value) for name, values in request.POST.lists() for value in values]
        context = site.each_context(request) | {
            "possible": possible, "confirm": step_up.address(reverse("admin:confirmed")),
            "again": AGAIN in request.POST,
            "entered": [row for row in entered if row[0] not in ("csrfmiddlewaretoken", AGAIN)],
        }  # fmt: skip
        return render(request, "admin/orders/confirm.html", context, status=403)

    return guarded


def _end_confirmation(request: HttpRequest) -> HttpResponse:
    return render(request, "admin/orders/confirm.html", {"confirmed": True})


def section_of(label: str) -> str:
    """Return the section of a table such as "auth.user"; "" where no section names it."""
    return next((name for name, tables in SECTIONS.items() if label in tables), "")
