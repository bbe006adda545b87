"""The types of the fields of events, and what they say: what of a value is private, and which values JSON may hold.

Not here: the events (`event.py` has all of them).
"""

from __future__ import annotations

from typing import Annotated, Any, get_args, get_origin

# What redact does is said by the types of the fields: a plain `str` is emptied, so that a new field leaks nothing.
Word = Annotated[str, "stays"]  # an id, or a word out of a fixed set
TokenIds = Annotated[tuple[int, ...], "made zeros"]  # texts can be had from them


def redacted(value: Any, wanted: Any) -> Any:
    """The value in its shape with every text emptied and every token id zero; a Word stays."""
    if isinstance(value, str):
        return value if wanted == Word else ""
    if not isinstance(value, tuple | list):
        return value
    if wanted == TokenIds:
        return (0,) * len(value)
    return tuple(map(redacted, value, _item_types(wanted, len(value))))


def checked(value: Any, wanted: Any, name: str) -> Any:
    """The value called `name`, as JSON gives it, with lists made tuples. Raises ValueError for another type."""
    if get_origin(wanted) is Annotated:
        wanted = get_args(wanted)[0]
    if get_origin(wanted) is tuple and isinstance(value, list):
        types = _item_types(wanted, len(value))
        if len(types) == len(value):
            return tuple(checked(item, inner, name) for item, inner in zip(value, types, strict=True))
    elif wanted is float and type(value) is int:
        return float(value)
    elif type(value) is wanted:  # so that True is no int
        return value
    raise ValueError(f"{name} has a wrong type")


def _item_types(wanted: Any, n: int) -> tuple[Any, ...]:
    """The types of the items of a tuple that has `n` of them."""
    types = get_args(wanted)
    return types[:1] * n if types[1:] == (Ellipsis,) else types
