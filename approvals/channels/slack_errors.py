"""The errors that Slack answers with, and what they mean. Pure.

They are those of https://docs.slack.dev/reference/methods/chat.postMessage and of incoming webhooks. A receipt's
word is `slack_` and the error, so that the log can say what to do.
"""

from __future__ import annotations

from approvals.notifications.channel import Receipt, Result

LONGEST = 30  # characters of a receipt's word
GONE, LATER = Result.GONE, Result.LATER
_TOKEN = "Slack does not accept HOLDPOINT_SLACK_TOKEN any more: put the app's new token there"  # noqa: S105
_CHANNEL = "Slack knows no such channel, or the app is not in it: invite the app, and add the channel again"
_OUTSIDE = "the app is not in the Slack channel: invite it"
_NO_TAB = "the app takes no messages: turn on the Messages tab in its settings, under App Home"
_NOBODY = "nobody in Slack has this e-mail address"
_AWAY = "the person's Slack account is off"
_REMOVED = "the webhook was removed in Slack: add another one"
_ARCHIVED = "the channel was archived in Slack"
_SCOPE = "the Slack app lacks a scope: it needs chat:write, users:read and users:read.email"
_ILL = "Slack could not take it just now"
# Error -> (what that means for the address, words as a part of a sentence). LATER: once somebody did what they say.
ERRORS = {
    "channel_not_found": (GONE, _CHANNEL), "not_in_channel": (LATER, _OUTSIDE),
    "is_archived": (GONE, _ARCHIVED), "channel_is_archived": (GONE, _ARCHIVED),
    "users_not_found": (GONE, _NOBODY), "user_not_found": (GONE, _NOBODY), "user_disabled": (GONE, _AWAY),
    "cannot_dm_bot": (GONE, "this is an app's account in Slack, not a person's"),
    "messages_tab_disabled": (LATER, _NO_TAB),
    "invalid_token": (GONE, _REMOVED), "no_service": (GONE, _REMOVED), "no_active_hooks": (GONE, _REMOVED),
    "no_team": (GONE, _REMOVED), "team_disabled": (GONE, _REMOVED),
    "invalid_auth": (LATER, _TOKEN), "not_authed": (LATER, _TOKEN), "token_revoked": (LATER, _TOKEN),
    "token_expired": (LATER, _TOKEN), "account_inactive": (LATER, _TOKEN),
    "missing_scope": (LATER, _SCOPE), "no_permission": (LATER, _SCOPE), "access_denied": (LATER, _SCOPE),
    "ratelimited": (LATER, _ILL), "rate_limited": (LATER, _ILL), "service_unavailable": (LATER, _ILL),
    "internal_error": (LATER, _ILL), "fatal_error": (LATER, _ILL), "request_timeout": (LATER, _ILL),
    "rollup_error": (LATER, _ILL),
}  # fmt: skip
# The earlier message cannot be changed, so a new one is sent.
UNCHANGEABLE = frozenset({"message_not_found", "cant_update_message", "edit_window_closed"})


def word_of(error: str) -> str:
    """Return the receipt's word for an error."""
    return f"slack_{error}"[:LONGEST]


WORDS = {word_of(error): said for error, (_result, said) in ERRORS.items()}


def refused(error: str, *, retry_after: float | None = None) -> Receipt:
    """Return the receipt of a call that Slack refused with this error."""
    result = ERRORS[error][0] if error in ERRORS else LATER if retry_after else Result.REFUSED
    return Receipt(result, word_of(error), retry_after=retry_after)
