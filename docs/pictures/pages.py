"""The pages to take pictures of, each with a function that brings it to the state to show."""

from __future__ import annotations

from collections.abc import Callable

from playwright.sync_api import Page, Route, expect

from .acting import DEMO, confirm_reader, open_gate, send_form, seq_of
from .people import choose_gates
from .story import PAY, PROPOSE, History, open_rewind

Show = Callable[[Page, History], str]  # prepares the page; returns the part to save, "" for the window


def _at(address: str, part: str = "body") -> Show:
    def show(page: Page, history: History) -> str:
        page.goto(address)
        return part

    return show


def _recorded(address: Callable[[History], str]) -> Show:
    """Show a page whose address is in the history."""

    def show(page: Page, history: History) -> str:
        page.goto(address(history))
        return "body"

    return show


def _gate(name: str) -> Show:
    def show(page: Page, history: History) -> str:
        open_gate(page, name)
        return "body"

    return show


def _comparison(page: Page, history: History) -> str:
    page.goto(history.rewound)
    newest = seq_of(page, PROPOSE)
    page.goto(f"{history.rewound}comparisons/?a=5&b={newest}")
    return "body"


def _rewind(page: Page, history: History) -> str:
    open_rewind(page, history.sent_back, PAY)
    return "#inspect"


def _edit(page: Page, history: History) -> str:
    page.goto(f"{history.sent_back}checkpoints/4/edit/")
    with page.expect_response("**/impacts/"):
        page.locator("[name='state/ticket/reason']").select_option("goodwill")
    expect(page.locator("#order-panel .impact")).to_be_visible()
    expect(page.locator("hp-order[data-stale]")).to_have_count(0)
    return "body"


def _fork(page: Page, history: History) -> str:
    page.goto(f"{history.rewound}checkpoints/{history.proposed}/fork/")
    return "body"


def _palette(page: Page, history: History) -> str:
    page.goto("/")
    page.keyboard.press("Control+k")
    page.keyboard.type("refund")
    expect(page.locator("dialog[open] a").first).to_be_visible()
    return ""


def _keys(page: Page, history: History) -> str:
    page.goto("/")
    page.keyboard.press("?")
    expect(page.locator("dialog[open]")).to_be_visible()
    return ""


def _password(page: Page, history: History) -> str:
    page.goto(history.outside.large)
    page.locator("#decide label[data-choice=approve]").click()
    return "body"


def _confirmed(address: str) -> Show:
    """Show a page of which the reader has to confirm who they are first."""

    def show(page: Page, history: History) -> str:
        page.goto(address)
        confirm_reader(page)
        return "body"

    return show


def _bulk(page: Page, history: History) -> str:
    choose_gates(page)
    return "body"


def _simulated(page: Page, history: History) -> str:
    page.goto("/admin/approvals/policy/")
    with page.expect_navigation():
        page.locator("#result_list").get_by_role("link", name="refunds", exact=True).click()
    page.locator("[name=quorum]").fill("2")
    page.locator("[name=_simulate]").click()
    expect(page.locator("#simulated")).to_be_visible()
    return "body"


def _first(address: str) -> Show:
    """Show the first row of a list of the administration."""

    def show(page: Page, history: History) -> str:
        page.goto(address)
        with page.expect_navigation():
            page.locator("#result_list tbody th a").first.click()
        return "body"

    return show


def _takeover(page: Page, history: History) -> str:
    page.goto(history.people.claimed)
    page.get_by_text("Take over…").click()
    return "body"


def _posted(address: str, token: str = "") -> Show:
    """Show the answer to a form that is sent to `address`, with the page's own token unless another is given."""

    def show(page: Page, history: History) -> str:
        page.goto("/account/")
        with page.expect_navigation():
            page.locator("form[action$='/changes/']").evaluate(
                """(form, [address, token]) => {
                  form.action = address;
                  if (token) form.elements.csrfmiddlewaretoken.value = token;
                  form.submit();
                }""",
                [address, token],
            )
        return "body"

    return show


def _broken(name: str) -> Show:
    """Show a page that the server sends where it or what it needs is broken."""

    def show(page: Page, history: History) -> str:
        def answer(route: Route) -> None:
            route.fulfill(status=int(name[:3]), content_type="text/html", body=history.people.errors[name])

        page.route("**/broken/", answer)
        page.goto("/broken/")
        return ""

    return show


def _new_codes(page: Page, history: History) -> str:
    page.goto("/account/security/recovery-codes/")
    confirm_reader(page)
    page.get_by_role("button", name="Make new codes").click()
    expect(page.get_by_text("only time they are shown")).to_be_visible()
    return "body"


def _second_step(page: Page, history: History) -> str:
    page.context.clear_cookies()
    page.goto("/")
    page.fill("[name=login]", "mira")
    page.fill("[name=password]", DEMO)
    page.press("[name=password]", "Enter")
    page.wait_for_url("**/second-step/**")
    return "body"


def _provider(page: Page, history: History) -> str:
    _sign_in(page, history)
    with page.expect_navigation():
        page.get_by_role("button", name="Sign in with Example Corp").click()
    return "body"


def _too_many(page: Page, history: History) -> str:
    while not page.get_by_text("Too many tries").count():
        page.goto("/accounts/password/reset/")
        page.fill("[name=email]", "nobody@holdpoint.example")
        send_form(page)
    return "body"


def _sign_in(page: Page, history: History) -> str:
    page.context.clear_cookies()
    page.goto("/")
    return "body"


ANN: dict[str, Show] = {
    "inbox": _at("/", ""),
    "gate": _gate("Marit Ellery"),
    "actions": _gate("Restock"),
    "schedules": _gate("Machine 14 is down"),
    "run": _recorded(lambda history: history.rewound),
    "comparison": _comparison,
    "rewind": _rewind,
    "edit": _edit,
    "fork": _fork,
    "runs": _at("/runs/"),
    "agents": _at("/agents/"),
    "agent": _at("/agents/refunds/"),
    "program-gate": _recorded(lambda history: history.outside.asking),
    "program-run": _recorded(lambda history: history.outside.paid),
    "password-gate": _password,
    "assistant-gate": _recorded(lambda history: history.outside.assistant),
    "asked-gate": _recorded(lambda history: history.outside.asking),
    "undo-gate": _recorded(lambda history: history.outside.undoable),
    "receipt-gate": _recorded(lambda history: history.outside.receipt),
    "receipt": _recorded(lambda history: f"{history.outside.receipt}receipt/"),
    "hand-over": _recorded(lambda history: f"{history.outside.asking}hand-over/"),
    "inbox-all": _at("/?queue=all", ""),
    "inbox-decided": _at("/?queue=by_me", ""),
    "inbox-empty": _at("/?queue=snoozed", ""),
    "views": _at("/inbox/views/"),
    "bulk": _bulk,
    "insights": _at("/insights/"),
    "insights-gates": _at("/insights/gates/"),
    "tokens": _at("/tokens/"),
    "device": _at("/device/"),
    "profile": _at("/account/"),
    "security": _at("/account/security/"),
    "app": _confirmed("/account/security/app/"),
    "passkey": _confirmed("/account/security/passkeys/"),
    "sessions": _at("/account/sessions/"),
    "change-password": _at("/accounts/password/change/"),
    "confirm": _at("/accounts/reauthenticate/"),
    "away": _at("/account/away/"),
    "notifications": _at("/account/notifications/"),
    "offline": _at("/offline/", ""),
    "palette": _palette,
    "keys": _keys,
    "bulk-result": _recorded(lambda history: history.people.bulk),
    "claimed-gate": _recorded(lambda history: history.people.claimed),
    "takeover": _takeover,
    "taken-over-gate": _recorded(lambda history: history.people.taken_over),
    "merged-gate": _recorded(lambda history: history.people.merged),
    "missing": _at("/gates/999999/"),
    "forbidden": _posted("/audit/events/1/erasures/"),
    "form-expired": _posted("/account/changes/", "x" * 64),
    "form-address": _at("/account/changes/"),
    "broken": _broken("500"),
    "no-database": _broken("503"),
    "no-redis": _broken("503_redis"),
    "disk-full": _broken("503_disk"),
}
MIRA: dict[str, Show] = {
    "factors": _at("/account/security/"),
    "recovery-codes": _new_codes,
}
ADMIN: dict[str, Show] = {
    "audit": _at("/audit/"),
    "administration": _at("/admin/"),
    "policies": _at("/admin/approvals/policy/"),
    "policy": _at("/admin/approvals/policy/add/"),
    "policy-tried": _simulated,
    "policy-changes": _at("/admin/approvals/policychange/"),
    "policy-change": _first("/admin/approvals/policychange/"),
    "calendar": _at("/admin/approvals/calendar/add/"),
    "chat-channel": _at("/admin/approvals/channeladdress/add/"),
    "notices": _at("/admin/approvals/notice/"),
    "channel-states": _at("/admin/approvals/channelstate/"),
    "account-of-another": _first("/admin/auth/user/"),
    "webhook": _first("/admin/approvals/webhook/"),
    "retention": _at("/admin/checkpoints/retentionpolicy/"),
    "dry-run": _recorded(lambda history: history.dry_run),
    "webhooks": _at("/admin/approvals/webhook/"),
    "deliveries": _at("/admin/approvals/delivery/"),
    "sign-in": _sign_in,  # it signs out, as those after it need
    "forgotten": _at("/accounts/password/reset/"),
    "forgotten-sent": _at("/accounts/password/reset/done/"),
    "too-many-tries": _too_many,
    "new-password": _recorded(lambda history: history.people.new_password),
    "provider-away": _provider,
    "second-step": _second_step,
}
# Pages that come with a status of which the browser complains.
REFUSED = {"missing": "404", "form-address": "405", "provider-away": "403", "too-many-tries": "429"}
REFUSED |= dict.fromkeys(["forbidden", "form-expired"], "403") | {"broken": "500"}
REFUSED |= dict.fromkeys(["no-database", "no-redis", "disk-full"], "503")
