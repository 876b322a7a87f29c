"""The content security policy: a page may load, run and send to only what this site serves.

It allows no inline script or style and no nonce: no text of an agent can become one, even where escaping failed.
"""

from __future__ import annotations

SELF, NONE = "'self'", "'none'"
DIRECTIVES = {
    "default-src": NONE,
    "script-src": SELF,
    "style-src": SELF,
    "img-src": SELF,
    "font-src": SELF,
    "connect-src": SELF,
    "manifest-src": SELF,
    "worker-src": SELF,
    "form-action": SELF,
    "base-uri": NONE,
    "frame-ancestors": NONE,
    "object-src": NONE,
}


def policy(*, https: bool) -> str:
    """Return the header's text."""
    directives = [f"{name} {source}" for name, source in DIRECTIVES.items()]
    return "; ".join([*directives, *(["upgrade-insecure-requests"] if https else [])])
