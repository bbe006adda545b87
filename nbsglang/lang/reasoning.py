"""The reasoning of a model that writes it between tags, apart from its answer.

Not here: where the two become variables (`execute.py`).
"""

from __future__ import annotations


def split_reasoning(text: str) -> tuple[str, str]:
    """(reasoning, answer) of a text; without tags all of it is the answer.

    The opening tag may be missing (some templates write it into the prompt); without a closing tag all is reasoning.
    """
    opened = text.lstrip().startswith("<think>")
    head, closing, tail = text.partition("</think>")
    if not closing and not opened:
        return "", text
    reasoning = head.lstrip().removeprefix("<think>") if opened else head
    return reasoning.strip(), tail.lstrip()
