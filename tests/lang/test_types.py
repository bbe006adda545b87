"""Types as JSON Schemas."""

from __future__ import annotations

import json
from typing import Any

import pydantic
import pytest

from nbsglang.errors import UsageError
from nbsglang.lang.types import typed


def schema(kind: object) -> Any:
    constraint = typed(kind).constraint
    assert constraint is not None
    assert constraint.kind == "schema"
    return json.loads(constraint.value)


class Inner(pydantic.BaseModel):
    properties: dict[str, int]


class Outer(pydantic.BaseModel):
    inner: list[Inner]
    free: dict[str, str] = {}


class Open(pydantic.BaseModel, extra="allow"):
    a: int


def test_objects_have_the_keys_of_their_type_and_no_others() -> None:
    whole = schema(Outer)
    assert whole["additionalProperties"] is False
    assert whole["$defs"]["Inner"]["additionalProperties"] is False
    assert whole["properties"]["free"]["additionalProperties"] == {"type": "string"}
    assert whole["$defs"]["Inner"]["properties"]["properties"]["additionalProperties"] == {"type": "integer"}


def test_a_type_may_leave_them_open() -> None:
    assert schema(Open)["additionalProperties"] is True


def test_what_no_text_is_constrained_to_is_refused() -> None:
    with pytest.raises(UsageError, match="complex"):
        typed(complex)


@pytest.mark.parametrize("kind", [list[int], dict[str, int]])
def test_what_has_no_keys_of_its_own_stays(kind: object) -> None:
    assert schema(kind).get("additionalProperties") is not False
