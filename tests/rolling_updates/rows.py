"""A row of any model, made of its columns alone."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from itertools import count
from typing import Any
from uuid import uuid4

from django.db import models
from django.db.models import NOT_PROVIDED, Model
from django.utils import timezone

_numbers = count(1)  # no two rows are alike
_VALUES: dict[str, Callable[[], Any]] = {
    "CharField": lambda: f"x{next(_numbers)}",
    "TextField": lambda: f"x{next(_numbers)}",
    "BinaryField": lambda: b"%d" % next(_numbers),
    "BooleanField": lambda: False,
    "DateTimeField": lambda: timezone.now() + timedelta(days=1),  # tokens expire after they were made
    "UUIDField": uuid4,
    "FloatField": lambda: 1.0,
    "JSONField": list,
    "SearchVectorField": lambda: "x",
    "DurationField": lambda: timedelta(days=1),
    "ArrayField": list,
}


def bare(model: type[Model]) -> dict[str, Any]:
    """Values for the columns of a model that have no default; its foreign keys lead nowhere."""
    demanded = [field for field in model._meta.concrete_fields if _demanded(field)]
    return {field.attname: _VALUES.get(field.get_internal_type(), lambda: next(_numbers))() for field in demanded}


def _demanded(field: models.Field[Any, Any]) -> bool:
    given = field.has_default() or field.db_default is not NOT_PROVIDED
    return not given and not getattr(field, "auto_now_add", False) and not isinstance(field, models.AutoField)
