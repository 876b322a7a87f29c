"""The Django project: settings, URLs, the ASGI application, Celery, health and the local stack."""

from config.celery import app as celery_app

__all__ = ["celery_app"]
