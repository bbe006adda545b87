"""Which keywords a schema may have.

Those that JSON Schema does not know are annotations, which say nothing of a value, but for names that look like a
keyword in another spelling: to pass over these would be to ignore what was meant.

Not here: what the keywords mean (`schema_reader.py`, `schema_keywords.py`).
"""

from __future__ import annotations

from difflib import get_close_matches
from functools import lru_cache

from nbsglang.engine.grammar.schema_keywords import KEYWORDS_OF

_ANNOTATIONS = (
    "title", "description", "default", "examples", "example", "$schema", "$id", "id", "$comment", "deprecated",
    "readOnly", "writeOnly", "$defs", "definitions", "$anchor", "discriminator", "contentEncoding", "contentMediaType",
    "contentSchema",
)  # fmt: skip
_APPLICATORS = (
    "type", "enum", "const", "allOf", "anyOf", "oneOf", "$ref", "not", "if", "then", "else", "dependencies",
    "dependentRequired", "dependentSchemas",
)  # fmt: skip
_MEANT = (*_APPLICATORS, *dict.fromkeys(keyword for some in KEYWORDS_OF.values() for keyword in some))
UNSUPPORTED = (
    "minContains", "maxContains", "unevaluatedItems", "unevaluatedProperties", "extends", "disallow",
    "divisibleBy",
)  # fmt: skip
_CORE = ("$dynamicRef", "$dynamicAnchor", "$recursiveRef", "$recursiveAnchor", "$vocabulary")
_OTHERS = ("$data", "$merge", "$patch", "$include", "$import")  # what some take for more than an annotation
_KNOWN = frozenset((*_ANNOTATIONS, *_MEANT))
_ALIKE = 0.85  # from here on two names are taken for two spellings of one


@lru_cache(maxsize=1024)
def objection(keyword: str) -> str:
    """Why a schema with this keyword cannot be used; nothing if it can."""
    if keyword in _KNOWN or keyword.startswith(("x-", "_")):
        return ""
    if keyword in (*UNSUPPORTED, *_CORE, *_OTHERS):
        return "the keyword is not supported: say it with others, or take it away"
    spelling = _spelling(keyword)
    return (
        f"it is no keyword of JSON Schema; write {spelling!r} if that is meant, else another name" if spelling else ""
    )


def _spelling(name: str) -> str:
    """The keyword that a name may be meant for; nothing if there is none."""
    plain = {keyword.lower().lstrip("$"): keyword for keyword in (*UNSUPPORTED, *_MEANT, *_CORE)}
    name = name.lower().lstrip("$")
    close = [name] if name in plain else get_close_matches(name, plain, 1, _ALIKE) if len(name) > 3 else []
    return plain[close[0]] if close else ""
