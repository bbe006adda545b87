"""Schemas with tests, from the files of a folder.

Not here: what is measured (`schemas.py`).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

DEEPEST = 3  # values inside each other, in bounded examples


def read(folder: Path, most: int | None = None) -> dict[str, dict[str, Any]]:
    """The examples of a folder, by file, those of a list with their places. Others than examples are left out."""
    found: dict[str, dict[str, Any]] = {}
    for path in sorted(folder.rglob("*.json")):
        content = json.loads(path.read_text(encoding="utf-8"))
        name = str(path.relative_to(folder))
        several = {f"{name}#{n}": part for n, part in enumerate(content)} if isinstance(content, list) else {}
        for key, example in (several or {name: content}).items():
            if isinstance(example, dict) and "schema" in example and isinstance(example.get("tests"), list):
                found[key] = example
    return dict(list(found.items())[:most])


def bounded(example: dict[str, Any]) -> dict[str, Any]:
    """The example for values that are at most `DEEPEST` deep, with the tests that are."""
    given = example["schema"]
    schema: dict[str, Any] = given if isinstance(given, dict) else {"allOf": [given]}
    plain = {"type": ["null", "boolean", "number", "string"]}
    defs: dict[str, Any] = {"any 0": plain}
    for depth in range(1, DEEPEST + 1):
        part = {"$ref": f"#/$defs/any {depth - 1}"}
        array, members = {"type": "array", "items": part}, {"type": "object", "additionalProperties": part}
        defs[f"any {depth}"] = {"anyOf": [plain, array, members]}
    return {
        "schema": {
            **schema,
            "$defs": {**schema.get("$defs", {}), **defs},
            "allOf": [*schema.get("allOf", []), {"$ref": f"#/$defs/any {DEEPEST}"}],
        },
        "tests": [test for test in example["tests"] if _depth(test["data"]) <= DEEPEST],
    }


def _depth(value: Any) -> int:
    if not isinstance(value, dict | list):
        return 0
    return 1 + max(map(_depth, value.values() if isinstance(value, dict) else value), default=0)
