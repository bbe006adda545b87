"""Masks of nested languages, put together of those of their parts: a token may follow where it may follow one of the
frames of a state.

Nothing is made deterministic for that. An item is a part with a position, or a state where it has no places for others,
and the number of what it goes back to, frames or one item; tokens are followed from item to item.

Not here: the states (`nested.py`), single parts (`ways.py`, `leaves.py`), masks of other automata (`index.py`).
"""

from __future__ import annotations

import time
from collections import Counter, defaultdict, deque
from collections.abc import Sequence
from itertools import product
from typing import TypeAlias

from nbsglang.engine.grammar.leaves import Leaf, Left
from nbsglang.engine.grammar.matcher import MaskRow
from nbsglang.engine.grammar.merged import Merged
from nbsglang.engine.grammar.nested import Frame, Nested
from nbsglang.engine.grammar.partition import Classes
from nbsglang.engine.grammar.spots import Spots
from nbsglang.engine.grammar.tails import Tails
from nbsglang.engine.grammar.vocab import Vocab
from nbsglang.engine.grammar.ways import KEPT, Ways, keep

_PREPARED = 24  # states of a part
_ON_THE_WAY = 0.02  # seconds for what follows forks
Item: TypeAlias = tuple[int, int, int]  # a part by its number, a position or state, a number of frames


class Composed:
    """The masks of a `Nested` automaton for a vocabulary that can spell everything. Not for several threads at once.

    Only for one whose parts with places for others are of single characters (`is_possible`).
    """

    def __init__(self, vocab: Vocab, nested: Nested, classes: Classes, tails: Tails) -> None:
        self._vocab, self._nested = vocab, nested
        self._rules = nested.rules
        self._spots = [asked.spots for asked in nested.rules]
        self._ways = [None if spots is None else Ways(vocab, spots) for spots in self._spots]
        self._leaves: dict[int, Leaf] = {}
        self._beside = classes, tails
        self._items: dict[Frame, Sequence[Item]] = {}
        self._backs: dict[int, Sequence[Item]] = {}
        self._calls: dict[tuple[int, Item], Sequence[Item]] = {}
        self._called: list[Item] = []  # what these go back to, by numbers below 0
        self._beyond: dict[tuple[Merged, int], Sequence[int]] = {}
        self._equal: dict[tuple[int, ...], tuple[int, ...]] = {}

    @staticmethod
    def is_possible(nested: Nested) -> bool:
        """Whether masks can be put together so."""
        return all(asked.is_leaf or asked.spots is not None for asked in nested.rules)

    def prepare(self, seconds: float) -> None:
        """Look at the parts that have no places for others, from their beginnings on, for as long as that.

        These take most of the time of masks. Whoever compiles has it, and who makes tokens has not.
        """
        end = time.perf_counter() + seconds
        space = self._vocab.paths.child(0, ord(" "))  # which stands before most values
        todo = deque((rule, asked.start) for rule, asked in enumerate(self._rules) if asked.is_leaf)
        seen, n_seen = set(todo), Counter[int]()
        while todo and time.perf_counter() < end:
            rule, state = todo.popleft()
            asked = self._rules[rule]
            nodes = (0, space) if state == asked.start and space > 0 else (0,)
            for node, at in product(nodes, asked.places(state)):
                self._leaf(rule).part(node, at)
            for target, _ in asked.steps(state).moves:
                if n_seen[rule] < _PREPARED and (rule, target) not in seen and asked.steps(target).moves:
                    seen.add((rule, target))
                    n_seen[rule] += 1
                    todo.append((rule, target))
        end = min(end, time.perf_counter() + _ON_THE_WAY)
        for spots, ways in zip(self._spots, self._ways, strict=True):
            if spots is not None and ways is not None:
                self._prepare_ways(spots, ways, end)

    def _prepare_ways(self, spots: Spots, ways: Ways, end: float) -> None:
        """Look at what follows forks and what they lead to, and the ends of parts that were looked at."""
        behind = defaultdict[int, set[int]](set)  # the positions that forks lead to, by the characters on the way
        for at in spots.forks:
            ways.way(0, at)
            for text, afters in spots.next(at).texts:
                behind[len(text)].update(afters)
            if time.perf_counter() > end:
                return
        for place, n_chars in ((place, n_chars) for n_chars, places in behind.items() for place in places):
            ways.way(0, place)
            ways.way(0, place + 1 - n_chars)
            if time.perf_counter() > end:
                return
        for at, number in spots.calls:
            if time.perf_counter() > end:
                return
            leaf = self._leaves.get(number)
            for beyond in leaf.beyonds if leaf is not None else ():
                ways.small(beyond, at)

    def items(self, state: int) -> Sequence[Item]:
        """What the mask of a state is made of; not for long: what they go back to may be forgotten at the next call."""
        if len(self._called) > KEPT:
            self._forget()
        frames = self._nested.frames(state)
        if len(frames) == 1:
            (frame,) = frames
            return self._of(frame)
        return [item for frame in frames for item in self._of(frame)]

    def text(self, item: Item) -> str:
        """The text that must follow an item, as far as `Spots.text` tells."""
        rule, at, _ = item
        spots = self._spots[rule]
        return "" if spots is None else spots.text(at)

    def sole(self, item: Item) -> tuple[Left, Sequence[int]] | None:
        """What follows an item of a part without places for others: in the part, and beyond it.

        None for other items. Both are the same objects as long as nothing has been forgotten.
        """
        rule, at, back = item
        if self._ways[rule] is not None or back == 0:
            return None
        left = self._leaf(rule).part(0, at)
        beyond = left.part.beyond
        return left, () if beyond is None else self._after(beyond, back)

    def found(self, items: Sequence[Item]) -> tuple[list[MaskRow], list[int]]:
        """The mask of some items, without EOS: rows and tokens, some of which may come twice."""
        rows: list[MaskRow] = []
        tokens: list[int] = []
        todo = [(0, item) for item in items]
        seen = set(todo)
        while todo:
            node, item = todo.pop()
            rule, at, back = item
            ways = self._ways[rule]
            if ways is None:
                self._add_leaf(node, rule, at, back, rows, tokens)
                continue
            own, downs, here, calls, ends = ways.way(node, at)
            tokens += own
            more = [(child, (rule, after, back)) for child, after in downs] if downs else []
            for number, after in calls:
                more += [(here, first) for first in self._begun(number, (rule, after, back))]
            if ends:
                more += [(here, behind) for behind in self._behind(back)]
            for one in more:
                if one not in seen:
                    seen.add(one)
                    todo.append(one)
        return rows, tokens

    # ------------------------------------------------------------------------------ items

    def _of(self, frame: Frame) -> Sequence[Item]:
        """A frame as items."""
        found = self._items.get(frame)
        if found is None:
            rule, state, back = frame
            found = keep(self._items, frame, tuple([(rule, at, back) for at in self._at(rule, state)]))
        return found

    def _at(self, rule: int, state: int) -> Sequence[int]:
        """The positions, or states, of a state of a part."""
        spots = self._spots[rule]
        return self._rules[rule].places(state) if spots is None else spots.of(state)

    def _behind(self, back: int) -> Sequence[Item]:
        """The items behind the end of a part."""
        if back < 0:
            return (self._called[-1 - back],)
        found = self._backs.get(back)
        if found is None:
            frames = self._nested.back(back)
            found = keep(self._backs, back, tuple([item for frame in frames for item in self._of(frame)]))
        return found

    def _begun(self, number: int, item: Item) -> Sequence[Item]:
        """The items of a part that begins in the place before a position, to which it goes back."""
        found = self._calls.get((number, item))
        if found is None:
            self._called.append(item)
            at = self._at(number, self._rules[number].start)
            found = self._calls[number, item] = tuple([(number, one, -len(self._called)) for one in at])
        return found

    def _forget(self) -> None:
        """Have room for more items that are gone back to."""
        self._called.clear()
        self._calls.clear()
        self._beyond.clear()

    # ------------------------------------------------------------------------------ parts without places for others

    def _leaf(self, rule: int) -> Leaf:
        found = self._leaves.get(rule)
        if found is None:
            found = self._leaves[rule] = Leaf(self._vocab, self._rules[rule], *self._beside, self._nested.is_alone)
        return found

    def _add_leaf(self, node: int, rule: int, at: int, back: int, rows: list[MaskRow], tokens: list[int]) -> None:
        left = self._leaf(rule).part(node, at)
        if left.part.row is not None:
            rows.append(left.part.row)
        tokens += left.part.tokens
        if left.part.beyond is not None and back:
            tokens += left.kept(self._after(left.part.beyond, back))

    def _after(self, beyond: Merged, back: int) -> Sequence[int]:
        """The tokens of a small trie that can follow the end of a part, ascending; equal ones are one object."""
        found = self._beyond.get((beyond, back))
        if found is None:
            behind = self._behind(back)
            along = self._along(beyond, behind[0]) if len(behind) == 1 else None
            tokens = tuple(sorted(set(self._through(beyond, behind) if along is None else along)))
            found = keep(self._beyond, (beyond, back), self._equal.setdefault(tokens, tokens))
        return found

    def _along(self, at: Merged, item: Item) -> list[int] | None:
        """The tokens of a small trie that can begin with an item, where they end in the text that must follow it."""
        tokens: list[int] = []
        for char in self.text(item):
            if char >= "\x80":
                return None
            below = at.children.get(ord(char))
            if below is None:
                return tokens
            tokens += below.tokens
            at = below
        return tokens if at.is_empty else None

    def _through(self, beyond: Merged, items: Sequence[Item]) -> list[int]:
        """The tokens of a small trie that can begin with some items."""
        tokens: list[int] = []
        todo = [(beyond, item) for item in items]
        seen = set(todo)
        while todo:
            at, (rule, place, back) = todo.pop()
            ways = self._ways[rule]
            if ways is None:
                more = self._through_leaf(at, (rule, place, back), tokens)
            else:
                own, downs, here, calls, ends = ways.small(at, place)
                tokens += own
                more = [(below, (rule, after, back)) for below, after in downs] if downs else []
                for number, after in calls:
                    more += [(here, first) for first in self._begun(number, (rule, after, back))]
                if ends:
                    more += [(here, behind) for behind in self._behind(back)]
            for one in more:
                if one not in seen:
                    seen.add(one)
                    todo.append(one)
        return tokens

    def _through_leaf(self, at: Merged, item: Item, tokens: list[int]) -> list[tuple[Merged, Item]]:
        """Add the tokens in a part without places for others; where to go on."""
        rule, place, back = item
        read = self._leaf(rule).small(at, place)
        tokens += read.tokens
        more: list[tuple[Merged, Item]] = []
        for below, after, ends in read.downs:
            more.append((below, (rule, after, back)))
            more += [(below, behind) for behind in self._behind(back)] if ends else ()
        return more
