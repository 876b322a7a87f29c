"""The Django project: settings, URLs, the ASGI application, Celery, health and the local stack."""

import sys
from pathlib import Path

# The server uses the Python client, which lies beside it and is not installed: the adapters' codecs, the MCP tools.
sys.path.append(str(Path(__file__).resolve().parent.parent / "clients" / "python" / "src"))

from config.celery import app as celery_app

__all__ = ["celery_app"]
