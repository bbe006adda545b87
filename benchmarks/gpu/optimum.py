"""What was asked and made in a run, and the hit rate that a cache without limits would have had.

What counts is as in `benchmarks/optimum.py`: all tokens of a generation's prompt, all but the last of a scored choice
(which is only looked up); a token whose logits are needed is computed by each prompt that needs them. Other than
there, what a call generated counts as cached once the call has ended (all but its last token, whose keys and values
nobody has computed): the next turn of a chat finds it.

Not here: what an engine computed (the adapters), the texts of the benchmark on a CPU.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

Ids = Sequence[int]


class Note(NamedTuple):
    """`ids` and `more` are cached from now on. Of a prompt, logits are needed from index `wanted` on; else it is -1."""

    ids: Ids
    more: Ids = ()
    wanted: int = -1


class Notes:
    """The calls of one run, in order. Nothing is copied: notes are taken while the clock runs."""

    def __init__(self) -> None:
        self.notes: list[Note] = []
        self.n_prompts = 0
        self.n_prompt_tokens = 0
        self.n_out = 0
        self.peak = 0  # generations under way at once
        self._n_open = 0

    def asked(self, ids: Ids) -> None:
        """A generation begins."""
        self._prompt(ids, (), len(ids) - 1)
        self._n_open += 1
        self.peak = max(self.peak, self._n_open)

    def made(self, ids: Ids, out: Ids) -> None:
        """It has ended."""
        self._n_open -= 1
        self.n_out += len(out)
        self.notes.append(Note(ids, out[:-1]))

    def scored(self, ids: Ids, choice: Ids) -> None:
        """A choice is to be scored."""
        self._prompt(ids, choice[:-1], len(ids) - 1)

    def _prompt(self, ids: Ids, more: Ids, wanted: int) -> None:
        self.notes.append(Note(ids, more, wanted))
        self.n_prompts += 1
        self.n_prompt_tokens += len(ids) + len(more)


class Best(NamedTuple):
    """The hit rate of a cache without limits, the tokens that it would hold at the end, those of the longest text."""

    hit_rate: float
    n_unique: int
    n_longest: int


def optimum(notes: Notes) -> Best:
    """From the notes of a run."""
    trie: dict[int, Any] = {}
    n_hit = n_unique = 0
    for note in notes.notes:
        n_known, n_new = _add(trie, [*note.ids, *note.more])
        n_unique += n_new
        if note.wanted >= 0:
            n_hit += min(n_known, note.wanted)
    n_longest = max((len(note.ids) + len(note.more) for note in notes.notes), default=0) + 1
    return Best(n_hit / max(notes.n_prompt_tokens, 1), n_unique, n_longest)


def _add(trie: dict[int, Any], ids: Ids) -> tuple[int, int]:
    """Put ids into the trie; how many leading ones were there, and how many are new."""
    node = trie
    for n, token in enumerate(ids):
        found = node.get(token)
        if found is None:
            for new in ids[n:]:
                below: dict[int, Any] = {}
                node[new] = below
                node = below
            return n, len(ids) - n
        node = found
    return len(ids), 0
