"""How the characters of strings are written in JSON, and nodes of strings made nodes of their spellings.

Not here: which strings (`schema_strings.py`).
"""

from __future__ import annotations

from functools import lru_cache

from nbsglang.engine.grammar.classes import both, complement, union
from nbsglang.engine.grammar.syntax import Ahead, Alt, Chars, Edge, Node, Ranges, Repeat, Seq, text

SHORT = {0x22: '"', 0x5C: "\\", 0x08: "b", 0x0C: "f", 0x0A: "n", 0x0D: "r", 0x09: "t"}  # what stands after "\"
QUOTE = Chars(((0x22, 0x22),))
_HEX = Chars(((0x30, 0x39), (0x41, 0x46), (0x61, 0x66)))
_ESCAPED = union([(0, 0x1F), *((point, point) for point in SHORT)])
PLAIN = complement(_ESCAPED)  # written as themselves


def spelled(node: Node) -> Node:
    """The texts of a node as they are written inside a string, each character in its one spelling.

    The node has no gates but lookaheads and, in them, the end of the string.
    """
    done: dict[int, Node] = {}
    stack = [(node, False)]
    while stack:
        at, is_ready = stack.pop()
        if id(at) in done:
            continue
        inner = at.parts if isinstance(at, Seq | Alt) else (at.part,) if isinstance(at, Repeat | Ahead) else ()
        if is_ready or not inner:
            done[id(at)] = _made(at, [done[id(part)] for part in inner])
        else:
            stack.append((at, True))
            stack += [(part, False) for part in inner]
    return done[id(node)]


@lru_cache(maxsize=4096)
def spelled_chars(ranges: Ranges) -> Node:
    """One character out of some, in its one spelling."""
    plain = both(ranges, PLAIN)
    escaped = [point for start, end in both(ranges, _ESCAPED) for point in range(start, end + 1)]
    if not escaped:
        return Chars(plain)
    ways: list[Node] = [Chars(plain)] if plain else []
    short = [(ord(SHORT[point]), ord(SHORT[point])) for point in escaped if point in SHORT]
    after: list[Node] = [Chars(union(short))] if short else []
    for first in (0, 1):
        digits = [f"{point & 15:x}" for point in escaped if point not in SHORT and point >> 4 == first]
        if digits:
            after.append(Seq((text(f"u00{first}"), Chars(union((ord(digit), ord(digit)) for digit in digits)))))
    ways.append(Seq((text("\\"), Alt(tuple(after)))))
    return Alt(tuple(ways)) if len(ways) > 1 else ways[0]


@lru_cache(maxsize=1)
def free_char() -> Node:
    """One character in any of the spellings of JSON, with no half of a surrogate pair alone."""
    d = Chars(((0x44, 0x44), (0x64, 0x64)))  # the digit that the numbers of all surrogates begin with
    not_d = Chars(((0x30, 0x39), (0x41, 0x43), (0x45, 0x46), (0x61, 0x63), (0x65, 0x66)))
    eight_to_b = Chars(((0x38, 0x39), (0x41, 0x42), (0x61, 0x62)))
    c_to_f = Chars(((0x43, 0x46), (0x63, 0x66)))
    two = Repeat(_HEX, 2, 2)
    alone = Seq((Alt((Seq((not_d, _HEX)), Seq((d, Chars(((0x30, 0x37),)))))), two))
    pair = Seq((d, eight_to_b, two, text("\\u"), d, c_to_f, two))
    short = Chars(union((ord(char), ord(char)) for char in (*SHORT.values(), "/")))
    number = Seq((text("u"), Alt((alone, pair))))
    return Alt((Chars(PLAIN), Seq((text("\\"), Alt((short, number))))))


def _made(node: Node, inner: list[Node]) -> Node:
    if isinstance(node, Chars):
        return spelled_chars(node.ranges)
    if isinstance(node, Edge):
        return QUOTE  # which ends every string, and is in none of the spellings but after a backslash
    if isinstance(node, Seq):
        return Seq(tuple(inner))
    if isinstance(node, Alt):
        return Alt(tuple(inner))
    if isinstance(node, Repeat):
        return Repeat(inner[0], node.least, node.most)
    return Ahead(inner[0], node.negative) if isinstance(node, Ahead) else node
