"""Reads the form of a page as a browser would post it: every field, the chosen of its choices, and one button."""

from __future__ import annotations

from html.parser import HTMLParser


class PageForm(HTMLParser):
    """The fields of the form that posts to `action`, wherever on the page they are."""

    def __init__(self, page: str, action: str) -> None:
        super().__init__()
        self.action, self.fields = action, dict[str, str]()
        self._id, self._inside, self._text = "", False, ""
        self._choice = ("", "")  # the open select's name, the open textarea's name
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Take a field's value."""
        given = {name: value or "" for name, value in attrs}
        if tag == "form" and given.get("action") == self.action:
            self._inside, self._id = True, given.get("id", "")
        name = given.get("name", "")
        if not name or "disabled" in given or not (self._inside or (self._id and given.get("form") == self._id)):
            if tag == "option" and self._choice[0] and "selected" in given:
                self.fields[self._choice[0]] = given.get("value", "")
            return
        if tag == "input" and (given.get("type") not in ("checkbox", "radio", "submit", "file") or "checked" in given):
            self.fields[name] = given.get("value", "")
        elif tag == "select":
            self._choice = (name, "")
        elif tag == "textarea":
            self._choice, self._text = ("", name), ""

    def handle_endtag(self, tag: str) -> None:
        """Leave a form, or a field."""
        if tag == "textarea" and self._choice[1]:
            self.fields[self._choice[1]] = self._text.removeprefix("\n")
        if tag in ("textarea", "select"):
            self._choice = ("", "")
        self._inside = self._inside and tag != "form"

    def handle_data(self, data: str) -> None:
        """Take a text field's text."""
        self._text += data if self._choice[1] else ""
