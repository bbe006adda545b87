"""Constrained decoding: from a regex, choices, a JSON Schema or a grammar to masks of allowed tokens.

`Vocab` and what compiles are loaded when they are first used.
"""

from __future__ import annotations

from importlib import import_module

_WHERE = {
    "NotRegularError": "schema_places",
    "Vocab": "vocab",
    "compile_grammar": "parsed",
    "compile_json_schema": "schema",
    "compile_regex": "compiled",
}  # name -> module


def __getattr__(name: str) -> object:
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_WHERE[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_WHERE])
