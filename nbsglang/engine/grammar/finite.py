"""The texts of a node that has a few only, written out.

Not here: what they are needed for (`regex.py`: a backreference is to one of them).
"""

from __future__ import annotations

from collections.abc import Sequence

from nbsglang.engine.grammar.syntax import Alt, Chars, Empty, Node, Repeat, Seq


def few_texts(node: Node, most: int) -> Sequence[str] | None:
    """The different texts of a node; None if there are more than `most`, or they depend on what is around them."""
    if isinstance(node, Empty):
        return [""]
    if isinstance(node, Chars):
        n_chars = sum(end - start + 1 for start, end in node.ranges)
        if n_chars > most:
            return None
        return [chr(point) for start, end in node.ranges for point in range(start, end + 1)]
    if isinstance(node, Alt):
        found: dict[str, None] = {}
        for part in node.parts:
            texts = few_texts(part, most)
            if texts is None:
                return None
            found |= dict.fromkeys(texts)
        return list(found) if len(found) <= most else None
    if isinstance(node, Seq):
        return _one_after_the_other(node.parts, most)
    if isinstance(node, Repeat) and node.most is not None and node.most <= most:
        times = range(node.least, node.most + 1)
        return few_texts(Alt(tuple(Seq((node.part,) * n) for n in times)), most)
    return None


def _one_after_the_other(parts: Sequence[Node], most: int) -> Sequence[str] | None:
    found = [""]
    for part in parts:
        texts = few_texts(part, most)
        if texts is None or len(found) * len(texts) > 4 * most:
            return None
        found = list(dict.fromkeys(begun + more for begun in found for more in texts))
    return found if len(found) <= most else None
