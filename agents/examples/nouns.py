"""The base class of the data types in the examples' states."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Noun(BaseModel):
    """What is not named here does not get in."""

    model_config = ConfigDict(extra="forbid")
