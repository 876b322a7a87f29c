"""The content security policy: a page may load, run and send to only what this site serves.

It allows no inline script or style and no nonce: no text of an agent can become one, even where escaping failed.
"""

from __future__ import annotations

from typing import Any

SELF, NONE = "'self'", "'none'"


def policy(*, https: bool) -> dict[str, Any]:
    """Return django-csp's setting."""
    return {
        "DIRECTIVES": {
            "default-src": [NONE],
            "script-src": [SELF],
            "style-src": [SELF],
            "img-src": [SELF],
            "font-src": [SELF],
            "connect-src": [SELF],
            "form-action": [SELF],
            "base-uri": [NONE],
            "frame-ancestors": [NONE],
            "object-src": [NONE],
            "upgrade-insecure-requests": https,
        }
    }
