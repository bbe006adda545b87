"""The masks of a constraint: for each state of a text the tokens that can come next.

A token is allowed where a full match can still be reached by tokens; EOS exactly where the text is one.

Not here: how a text's state is kept (`automatic.py`), where tokens lead (`moves.py`).
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import suppress

import numpy as np

from nbsglang.engine.grammar.composed import Composed
from nbsglang.engine.grammar.leaves import Left
from nbsglang.engine.grammar.limits import TooLargeError
from nbsglang.engine.grammar.live import Liveness
from nbsglang.engine.grammar.matcher import MaskRow
from nbsglang.engine.grammar.moves import Moves, State
from nbsglang.engine.grammar.nested import Nested
from nbsglang.engine.grammar.reached import Part
from nbsglang.engine.grammar.rows import SharedRows
from nbsglang.engine.grammar.table import Automaton, Table
from nbsglang.engine.grammar.tails import Ends
from nbsglang.engine.grammar.trie import Indices
from nbsglang.engine.grammar.vocab import Vocab, pack
from nbsglang.engine.grammar.ways import KEPT_ROWS, keep
from nbsglang.errors import ConstraintError

_PREPARING = 0.1  # seconds


class Index:
    """The masks of one automaton for one vocabulary, made when they are first asked for and shared by all matchers.

    Any thread may use it: what is there already costs no lock. `rows` may be shared by several constraints, `lock` is
    shared by those of one automaton.
    """

    def __init__(
        self,
        automaton: Automaton,
        vocab: Vocab,
        rows: SharedRows | None = None,
        lock: threading.RLock | None = None,
    ) -> None:
        self.vocab = vocab
        self.table = Table(automaton, lock)
        self.rows = SharedRows(vocab.n_words) if rows is None else rows
        self.start: State = (self.table.start, b"")
        self._lock = self.table.lock
        self._moves = Moves(vocab, self.table)
        self._live = Liveness(vocab, self.table, self._moves)
        self._composed: Composed | None = None
        if isinstance(automaton, Nested) and Composed.is_possible(automaton):
            self._composed = Composed(vocab, automaton, self.table.classes, self._moves.tails)
        self._sole: dict[tuple[int, int], tuple[int, Left, Sequence[int]]] = {}  # with what the keys are of
        self._joined: dict[tuple[tuple[int, ...], frozenset[int]], tuple[int, Sequence[MaskRow]]] = {}  # the same
        self._forced: dict[str, int] = {}  # by texts that must come next, as far as tokens go
        self._row_of: dict[State, int] = {}
        self._after: dict[tuple[State, int], State] = {}
        self._has_text: dict[int, bool] = {}

    @property
    def is_proved(self) -> bool:
        """Whether tokens can spell a match from all states, as the vocabulary has what the automaton needs."""
        return self._live.is_proved

    def check(self, name: str) -> None:
        """Raise ConstraintError, with this name for the constraint, if no tokens lead from the start to a match."""
        with self._lock:
            if self.start[0] < 0:
                raise ConstraintError(f"{name} cannot be used: no text matches it")
            if not self._live.is_live(self.start):
                raise ConstraintError(f"{name} cannot be used: {self._live.lacking()}")
            self.row(self.start)
            if self._composed is not None and self._live.is_proved:
                with suppress(TooLargeError):  # where a text comes there it is said, or another automaton goes on
                    self._composed.prepare(_PREPARING)

    def row(self, state: State) -> int:
        """The row of a state's mask. Raises ConstraintError if it would be empty, or past a budget."""
        found = self._row_of.get(state)
        if found is None:
            with self._lock:
                found = self._row_of.get(state)  # another thread may have been here
                if found is None:
                    found = self._row_of[state] = self._made(state)
        return found

    def mask(self, state: State) -> MaskRow:
        """The mask of a state. Raises as `row` does. Most were asked for before: these are to cost little."""
        row = self._row_of.get(state)
        if row is None:
            row = self.row(state)  # before `views` is looked at: it may put another in its place
        return self.rows.views[row]

    def accepts(self, state: State) -> bool:
        """The text is a full match."""
        return not state[1] and self.table.accepts(state[0])

    def has_text(self, state: State) -> bool:
        """Whether a token other than EOS can come next."""
        if self._live.is_proved and not state[1]:
            return self.table.goes_on(state[0])
        if self.accepts(state) and not self.vocab.eos_ids:
            with self._lock:
                return bool(self._text_mask(state).any())
        row = self.row(state)
        found = self._has_text.get(row)
        if found is None:
            found = self._has_text[row] = bool((self.rows.views[row] & self.vocab.text_row).any())
        return found

    def after(self, state: State, token: int) -> State | None:
        """The state after a token that is no EOS; None where the mask of `state` does not have it."""
        known = self._after.get((state, token))
        if known is not None:
            return known
        row = self._row_of.get(state)
        if row is not None and not self.rows.views[row].item(token >> 5) >> (token & 31) & 1:
            return None
        after = self._moves.read(state, token)
        if after is not None and row is None:
            with self._lock:
                if not self._moves.can_finish(after) or not self._live.is_live(after):
                    return None
        return after if after is None else keep(self._after, (state, token), after)

    # ------------------------------------------------------------------------------ all tokens

    def _made(self, state: State) -> int:
        is_simple = self._live.is_proved and not state[1]
        if is_simple and self._composed is not None:
            return self._composed_row(self._composed, state)
        ends = self.vocab.eos_ids if self.accepts(state) else ()
        narrow = self._moves.narrow(state) if is_simple else None
        if narrow is not None:
            return self._added([], [*narrow[0], *ends], state)
        return self._new(self._text_mask(state), ends, state)

    def _composed_row(self, composed: Composed, state: State) -> int:
        """The row of a state whose mask is put together of those of its parts."""
        items = composed.items(state[0])
        if len(items) == 1:
            if text := composed.text(items[0]):
                row = self._forced_row(text)
                if row is not None:
                    return row
            elif (sole := composed.sole(items[0])) is not None:
                return self._sole_row(state, *sole)
        return self._added(*composed.found(items), state)

    def _added(self, rows: Sequence[MaskRow], tokens: Sequence[int], state: State) -> int:
        """The row of some masks and tokens together. The masks of many states are made of the same ones."""
        if not rows and tokens:
            return self.rows.add_few(tokens)
        different = {id(row): row for row in rows}
        key = tuple(different), frozenset(tokens)
        known = self._joined.get(key)
        if known is None:
            rows = tuple(different.values())
            row = self._new(_joined(rows, self.vocab.n_words), tokens, state)
            known = keep(self._joined, key, (row, rows), KEPT_ROWS)
        return known[0]

    def _new(self, mask: MaskRow, tokens: Sequence[int], state: State) -> int:
        """The row of a mask and some tokens together, if it has one."""
        if not tokens and not np.count_nonzero(mask):
            why = "no token of this vocabulary can come next"
            if self.accepts(state):
                why = "the text is complete, and this vocabulary has no token to end it"
            raise ConstraintError(f"this constraint is at a dead end: {why}")
        return self.rows.add(mask, tokens)

    def _forced_row(self, text: str) -> int | None:
        """The row of a text that must come next; None where tokens go on after it."""
        row = self._forced.get(text)
        if row is None:
            tokens, node = self.vocab.paths.path(0, text)
            if node >= 0:
                return None
            row = self._forced[text] = self.rows.add_few(tokens)
        return row

    def _sole_row(self, state: State, left: Left, after: Sequence[int]) -> int:
        """The row of what follows in a part and beyond it, which many states have in common."""
        key = id(left), id(after)
        known = self._sole.get(key)
        if known is None:
            part = left.part
            tokens = [*part.tokens, *left.kept(after)]
            row = self._added([] if part.row is None else [part.row], tokens, state)
            known = keep(self._sole, key, (row, left, after))
        return known[0]

    def _text_mask(self, state: State) -> MaskRow:
        if state[1]:
            tokens = [token for token, after in self._moves.finishing(state) if self._live.is_live(after)]
            return pack(np.array(tokens, np.intp), self.vocab.n_words)
        return self._wide(state)

    def _wide(self, state: State) -> MaskRow:
        """The mask where no character has begun, by the nodes of the trie that can be reached."""
        reached, words, broken = self._moves.reach(state)
        row = np.zeros(self.vocab.n_words, np.int32)
        for part in reached.parts:
            row |= self._part_mask(part)
        if not self._live.is_proved:
            words, broken = self._alive(words), self._alive(broken)
        for ends in (words, broken):
            if len(ends.tokens):
                _set(row, ends.tokens)
        return row

    def _part_mask(self, part: Part) -> MaskRow:
        """The tokens of a stretch."""
        stretch, chain = part
        if self._live.is_proved:
            return stretch.shape.row(len(chain) - 1)
        return stretch.shape.row_of([d for d in range(1, len(chain)) if self._live.is_live((chain[d], b""))])

    def _alive(self, ends: Ends) -> Ends:
        """Those after which a match can be reached."""
        states = self._moves.after(ends)
        is_live = {state: self._live.is_live(state) for state in dict.fromkeys(states)}
        live = np.flatnonzero([is_live[state] for state in states])
        return Ends(ends.tokens[live], ends.states[live])


def _joined(rows: Sequence[MaskRow], n_words: int) -> MaskRow:
    """A mask of several, not to be changed."""
    if len(rows) == 1:
        return rows[0]
    joined = np.zeros(n_words, np.int32)
    for row in rows:
        joined |= row
    return joined


def _set(row: MaskRow, tokens: Indices) -> None:
    """Have the tokens in a mask."""
    if len(tokens) < 2000:
        np.bitwise_or.at(row.view(np.uint8), tokens >> 3, (1 << (tokens & 7)).astype(np.uint8))
    else:
        row |= pack(tokens, len(row))
