"""Masks of nested languages, put together of those of their parts: a token may follow where it may follow one of the
frames of a state.

Nothing is made deterministic for that. An item is a part with a position, or a state where it has no places for others,
and the number of what it goes back to, frames or one item; tokens are followed from item to item.

Not here: the states (`nested.py`), single parts (`ways.py`, `leaves.py`), masks of other automata (`index.py`).
"""

from __future__ import annotations

import time
from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Sequence
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
        self._parts: list[Ways | Leaf] = [
            Leaf(vocab, asked, classes, tails, nested.is_alone) if spots is None else Ways(vocab, spots)
            for asked, spots in zip(nested.rules, self._spots, strict=True)
        ]
        self._places = [
            asked.places if spots is None else spots.of for asked, spots in zip(nested.rules, self._spots, strict=True)
        ]
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
        leaves = {rule: part for rule, part in enumerate(self._parts) if isinstance(part, Leaf)}
        todo = deque((rule, self._rules[rule].start) for rule in leaves)
        seen, n_seen = set(todo), Counter[int]()
        while todo and time.perf_counter() < end:
            rule, state = todo.popleft()
            asked = self._rules[rule]
            nodes = (0, space) if state == asked.start and space > 0 else (0,)
            for node, at in product(nodes, asked.places(state)):
                leaves[rule].part(node, at)
            for target, _ in asked.steps(state).moves:
                if n_seen[rule] < _PREPARED and (rule, target) not in seen and asked.steps(target).moves:
                    seen.add((rule, target))
                    n_seen[rule] += 1
                    todo.append((rule, target))
        end = min(end, time.perf_counter() + _ON_THE_WAY)
        for spots, ways in zip(self._spots, self._parts, strict=True):
            if spots is not None and isinstance(ways, Ways):
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
            leaf = self._parts[number]
            for beyond in leaf.beyonds if isinstance(leaf, Leaf) else ():
                ways.small(beyond, at)

    def items(self, state: int) -> Sequence[Item]:
        """What the mask of a state is made of; not for long: what they go back to may be forgotten at the next call."""
        if len(self._called) > KEPT:
            self._forget()
        return self._of(self._nested.frames(state))

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
        leaf = self._parts[rule]
        if back == 0 or isinstance(leaf, Ways):
            return None
        left = leaf.part(0, at)
        beyond = left.part.beyond
        return left, () if beyond is None else self._after(beyond, back)

    def found(self, items: Sequence[Item]) -> tuple[list[MaskRow], list[int]]:
        """The mask of some items: rows and tokens, some of which may come twice."""
        rows: list[MaskRow] = []
        tokens: list[int] = []
        seen = set(todo := self._free(items, tokens))
        while todo:
            node, (rule, at, back) = todo.pop()
            part = self._parts[rule]
            if isinstance(part, Leaf):
                self._add_leaf(part, node, (rule, at, back), rows, tokens)
                continue
            own, downs, here, calls, ends = part.way(node, at)
            tokens += own
            more = [(child, (rule, after, back)) for child, after in downs] if downs else []
            for number, after in calls:
                more += [(here, first) for first in self._begun(number, (rule, after, back))]
            if ends and back:
                more += [(here, behind) for behind in self._behind(back)]
            elif ends and here == 0:
                tokens += self._vocab.eos_ids
            for one in more:
                if one not in seen:
                    seen.add(one)
                    todo.append(one)
        return rows, tokens

    def _free(self, items: Iterable[Item], tokens: list[int]) -> list[tuple[int, Item]]:
        """The items but for those that a text must follow which no token goes beyond; adds the tokens of these."""
        spots_of, path = self._spots, self._vocab.paths.path
        free: list[tuple[int, Item]] = []
        for item in items:
            spots = spots_of[item[0]]
            if spots is not None and (text := spots.text(item[1])):
                more, node = path(0, text)
                if node < 0:
                    tokens += more
                    continue
            free.append((0, item))
        return free

    # ------------------------------------------------------------------------------ items

    def _of(self, frames: Iterable[Frame]) -> list[Item]:
        """Frames as items."""
        items: list[Item] = []
        for rule, state, back in frames:
            for at in self._places[rule](state):
                items.append((rule, at, back))
        return items

    def _behind(self, back: int) -> Sequence[Item]:
        """The items behind the end of a part."""
        if back < 0:
            return (self._called[-1 - back],)
        found = self._backs.get(back)
        if found is None:
            found = keep(self._backs, back, tuple(self._of(self._nested.back(back))))
        return found

    def _begun(self, number: int, item: Item) -> Sequence[Item]:
        """The items of a part that begins in the place before a position, to which it goes back."""
        found = self._calls.get((number, item))
        if found is None:
            self._called.append(item)
            places = self._places[number](self._rules[number].start)
            found = self._calls[number, item] = tuple([(number, at, -len(self._called)) for at in places])
        return found

    def _forget(self) -> None:
        """Have room for more items that are gone back to."""
        self._called.clear()
        self._calls.clear()
        self._beyond.clear()

    # ------------------------------------------------------------------------------ parts without places for others

    def _add_leaf(self, leaf: Leaf, node: int, item: Item, rows: list[MaskRow], tokens: list[int]) -> None:
        rule, at, back = item
        left = leaf.part(node, at)
        row, own, beyond = left.part
        if row is not None:
            rows.append(row)
        tokens += own
        if back == 0:
            tokens += self._vocab.eos_ids if node == 0 and self._rules[rule].accepts(at) else ()
        elif beyond is not None:
            tokens += left.kept(self._after(beyond, back))

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
            part = self._parts[rule]
            if isinstance(part, Leaf):
                more = self._through_leaf(part, at, (rule, place, back), tokens)
            else:
                own, downs, here, calls, ends = part.small(at, place)
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

    def _through_leaf(self, leaf: Leaf, at: Merged, item: Item, tokens: list[int]) -> list[tuple[Merged, Item]]:
        """Add the tokens in a part without places for others; where to go on."""
        rule, place, back = item
        read = leaf.small(at, place)
        tokens += read.tokens
        more: list[tuple[Merged, Item]] = []
        for below, after, ends in read.downs:
            more.append((below, (rule, after, back)))
            more += [(below, behind) for behind in self._behind(back)] if ends else ()
        return more
