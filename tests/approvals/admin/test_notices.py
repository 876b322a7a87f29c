"""The log of messages in the administration, in the words of the person's own log."""

from __future__ import annotations

from approvals.models import Notice
from tests.factories import make_user
from tests.harness.signed_in_clients import signed_in


def test_kinds_are_named_in_words() -> None:
    """Operators read `my_run` and `asked`, in the list, its filter and the page of one message."""
    notice = Notice.objects.create(kind="my_run", channel="email", user=make_user("Ann Okafor"))
    client = signed_in(make_user("Root", superuser=True))
    for page in ("?kind=my_run", f"{notice.pk}/change/"):
        shown = client.get(f"/admin/approvals/notice/{page}").content.decode()
        assert "own run" in shown
        assert ">my_run<" not in shown
        assert ">asked<" not in shown
    assert client.get("/admin/approvals/notice/?kind=asked").content.decode().count("own run") == 1, "in the filter"
