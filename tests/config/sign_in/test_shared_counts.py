"""Tries were counted by each web process alone, so that a guesser had as many times the tries as there were processes.

The counts are in Redis, as data that runs nothing when it is read, and nobody signs in while they cannot be read.
"""

from __future__ import annotations

import pickle

import pytest
import redis
from django.conf import settings
from django.core.cache import cache, caches
from django.test import Client, override_settings

from tests.config.sign_in.test_factors import PASSWORD, fresh_limits, person

__all__ = ["fresh_limits"]


def wrong(client: Client, name: str) -> str:
    return client.post("/accounts/login/", {"login": name, "password": "no"}).content.decode()


def test_another_web_process_knows_of_the_wrong_passwords(redis_url: str) -> None:
    user = person()
    for _ in range(5):
        wrong(Client(), user.username)
    assert "oo many" in wrong(Client(), user.username)
    assert [*redis.Redis.from_url(redis_url).scan_iter("holdpoint:*:allauth:rl:*")]


def test_a_value_that_somebody_pickled_is_not_run(redis_url: str) -> None:
    redis.Redis.from_url(redis_url).set(cache.make_key("counts"), pickle.dumps([1]))
    with pytest.raises(ValueError, match="utf"):
        cache.get("counts")


def test_without_redis_nobody_signs_in_and_the_page_says_so() -> None:
    user = person()
    away = {"default": {**settings.CACHES["default"], "LOCATION": "redis://127.0.0.1:1/0"}}
    with override_settings(CACHES=away):
        caches.close_all()
        answer = Client(raise_request_exception=False).post(
            "/accounts/login/", {"login": user.username, "password": PASSWORD}
        )
    assert answer.status_code == 503
    assert "sign in" in answer.content.decode()
