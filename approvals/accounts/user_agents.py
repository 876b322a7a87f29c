"""Names a browser and its system by what it says of itself in User-Agent. Pure.

Only for people who look at their own list: anybody can write anything there.
"""

from __future__ import annotations

# The first that is found names it: most browsers also name those that they resemble.
BROWSERS = (
    ("Edg", "Edge"), ("OPR/", "Opera"), ("SamsungBrowser/", "Samsung Internet"), ("Firefox/", "Firefox"),
    ("FxiOS/", "Firefox"), ("CriOS/", "Chrome"), ("Chrome/", "Chrome"), ("Safari/", "Safari"), ("curl/", "curl"),
)  # fmt: skip
SYSTEMS = (
    ("iPhone", "iPhone"), ("iPad", "iPad"), ("Android", "Android"), ("Windows", "Windows"), ("Mac OS X", "Mac"),
    ("CrOS", "ChromeOS"), ("Linux", "Linux"),
)  # fmt: skip


def named(agent: str) -> str:
    """Write `Firefox on Linux`."""
    browser = next((name for mark, name in BROWSERS if mark in agent), "")
    system = next((name for mark, name in SYSTEMS if mark in agent), "")
    if browser and system:
        return f"{browser} on {system}"
    return browser or system or "Unknown browser"
