"""What an agent writes, in a real browser: nothing of it loads, links, runs, or stands where Holdpoint speaks."""

from __future__ import annotations

from collections.abc import Callable

from playwright.sync_api import Page, Request

from tests.approvals.presentation.deception.test_pages import addresses, stories
from tests.factories import ann
from tests.harness.browser_checks import watched
from tests.harness.examples import trying_all

NewPage = Callable[..., Page]
# Whatever an agent's text would have made of itself, had it become markup, and names that cannot be read aloud.
PROBE = r"""() => {
  const found = [];
  const strange = "img, iframe, object, embed, video, audio, base, script:not([src]), [onload], [onerror], [onclick]";
  for (const each of document.querySelectorAll(strange))
    if (each.closest("body")) found.push(each.outerHTML.slice(0, 80));
  for (const link of document.querySelectorAll("a[href], form[action], [formaction], use[href], image"))
    for (const name of ["href", "action", "formaction"]) {
      const at = link.getAttribute(name);
      if (at && !at.startsWith("#") && new URL(at, location).origin !== location.origin) found.push(at);
    }
  const unseen = /[\u200b-\u200f\u202a-\u202e\u2060-\u2069\u00ad\ufeff\u3164\u2800\u{e0000}-\u{e007f}]/u;
  for (const each of document.querySelectorAll("[aria-label], [title], [alt], [placeholder]"))
    for (const name of ["aria-label", "title", "alt", "placeholder"])
      if (unseen.test(each.getAttribute(name) ?? "")) found.push(`${name}: ${each.tagName}`);
  for (const each of document.querySelectorAll("button, a, label, legend, h1, h2, h3, option, summary, th"))
    if (unseen.test(each.textContent)) found.push(`named by ${each.tagName}: ${each.textContent.slice(0, 60)}`);
  if (unseen.test(document.title)) found.push("title");
  if (document.querySelector("main") && document.documentElement.scrollWidth > innerWidth) {
    const out = (each) => !each.closest("svg") && each.getBoundingClientRect().right > innerWidth + 1;
    const wide = [...document.querySelectorAll("body *")].filter(out).slice(0, 4);
    found.push(`wider than the window: ${wide.map((each) => each.outerHTML.slice(0, 90))}`);
  }
  return found;
}"""


def test_nothing_of_an_agents_words_loads_links_runs_or_misleads(new_page: NewPage, web: str) -> None:
    asked, question, run = stories()
    page = new_page(ann(asked.team), viewport={"width": 390, "height": 900})
    said, faults = watched(page), list[tuple[str, object]]()
    page.on("dialog", lambda dialog: faults.append(("dialog", dialog.message)))
    page.on("popup", lambda popup: faults.append(("popup", popup.url)))
    page.on("request", lambda request: faults.extend(strayed(request, web)))
    few = ("/", f"/gates/{asked.pk}/", f"/gates/{question.pk}/", f"/runs/{run.pk}/", f"/runs/{run.pk}/?at=2")
    for address in addresses(asked, question, run) if trying_all() else few:  # the HTML of all is read by itself
        answer = page.goto(address)
        assert answer is not None
        if answer.status in (403, 404):
            continue
        page.evaluate("document.querySelectorAll('details').forEach((each) => (each.open = true))")
        faults += [(address, fault) for fault in page.evaluate(PROBE)]
    assert faults == []
    assert [words for words in said if "status of 40" not in words] == []  # a page that is not this reader's


def strayed(request: Request, base: str) -> list[tuple[str, object]]:
    """What asks somebody else than the product's own server."""
    fine = request.url.startswith((f"{base}/", f"{base.replace('http', 'ws', 1)}/"))
    return [] if fine else [("request", request.url)]
