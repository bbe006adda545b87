"""Which strings of a choice others of it have, too: so that what is worked out stays small.

Not here: what choices there are (`schema_reader.py`).
"""

from __future__ import annotations

from collections.abc import Callable

from nbsglang.engine.grammar.schema_shapes import Shape, String


def without_parts(shapes: list[Shape], spend: Callable[[int], None]) -> list[Shape]:
    """The shapes but for strings that are plainly of another one; counts the work with `spend`."""
    texts = [*dict.fromkeys([shape for shape in shapes if isinstance(shape, String)])]
    if len(texts) < 2:
        return shapes
    spend(len(texts) ** 2 // 8)
    kept: list[String] = []
    for one in texts:  # of two that are of each other the first stays
        if not any(_is_within(one, other) for other in kept):
            kept = [*(other for other in kept if not _is_within(other, one)), one]
    return [*(shape for shape in shapes if not isinstance(shape, String)), *kept]


def _is_within(one: String, other: String) -> bool:
    is_short = other.most is None or (one.most is not None and one.most <= other.most)
    pairs = ((one.patterns, other.patterns), (one.formats, other.formats), (one.excluded, other.excluded))
    asks_more = all(set(more) >= set(less) for more, less in (*pairs, (one.others, other.others)))
    return one.least >= other.least and is_short and asks_more
