"""Constraints compiled for one vocabulary by our own automaton: regular expressions and choices.

Not here: matching (`automatic.py`), JSON Schemas and grammars (`external.py`).
"""

from __future__ import annotations

import threading
import weakref
from collections import OrderedDict
from collections.abc import Iterable

from nbsglang.engine.grammar.automatic import AutomatonMatcher
from nbsglang.engine.grammar.choices import Choices
from nbsglang.engine.grammar.compress import Compressed
from nbsglang.engine.grammar.index import Index
from nbsglang.engine.grammar.pattern import shown
from nbsglang.engine.grammar.prefixed import Prefixed
from nbsglang.engine.grammar.rows import SharedRows
from nbsglang.engine.grammar.table import Automaton
from nbsglang.engine.grammar.vocab import Vocab
from nbsglang.errors import ConstraintError

_MAX_PREFIXES = 16  # whose masks are kept


class Grammar:
    """A constraint for one vocabulary: any number of matchers share its masks, which are made as they are needed.

    `name` is what errors call it. `rows` may be shared with other grammars of the vocabulary. Making one is safe on
    any thread, also while matchers of others are used. `lock` is that of the other grammars of the automaton. Raises
    ConstraintError if no tokens lead to a match, which is not looked for again where it `is_checked`.
    """

    def __init__(
        self,
        name: str,
        automaton: Automaton,
        vocab: Vocab,
        rows: SharedRows | None = None,
        lock: threading.RLock | None = None,
        is_checked: bool = False,
    ) -> None:
        self.name = name
        self.vocab = vocab
        self.rows = SharedRows(vocab.n_words) if rows is None else rows
        self._automaton = automaton
        self._after: OrderedDict[bytes, Grammar] = OrderedDict()
        self._renewed: weakref.ref[Grammar] | None = None
        self._lock = threading.Lock()
        self.index = Index(automaton, vocab, self.rows, lock)
        self.compressed = Compressed(self.index.table)
        self.eos_row = self.rows.add(vocab.eos_row)
        if not is_checked:
            self.index.check(name)

    def matcher(self) -> AutomatonMatcher:
        """A `Matcher` at the beginning of the text; it belongs to one thread."""
        return AutomatonMatcher(self)

    def after(self, prefix: bytes) -> Grammar:
        """The same constraint after a required text. Raises ConstraintError if the bytes are not UTF-8."""
        if not prefix:
            return self
        with self._lock:
            found = self._after.get(prefix)
            if found is None:
                automaton, lock = Prefixed(_text_of(prefix), self._automaton), self.index.table.lock
                found = Grammar(self.name, automaton, self.vocab, self.rows, lock)
                self._after[prefix] = found
                if len(self._after) > _MAX_PREFIXES:
                    self._after.popitem(last=False)
            self._after.move_to_end(prefix)
            return found

    def renewed(self) -> tuple[Grammar, bool]:
        """The same constraint for texts that go on when this one has no room for more states, and whether it has none.

        Shared by those that ask while one of them still uses it, so it may have its own by now.
        """
        with self._lock:
            found = self._renewed() if self._renewed is not None else None
            if found is None:
                found = Grammar(self.name, self._automaton.renewed(), self.vocab, is_checked=True)
                self._renewed = weakref.ref(found)
                return found, True
            return found, False


def compile_regex(pattern: str, vocab: Vocab, rows: SharedRows | None = None) -> Grammar:
    """A grammar of the texts for which `re.fullmatch(pattern, text)` finds a match.

    Raises ConstraintError, which says what cannot be used, or that no tokens spell a match.
    """
    from nbsglang.engine.grammar.automaton import Automaton as PatternAutomaton
    from nbsglang.engine.grammar.regex import parse

    return Grammar(f"regex {shown(pattern)}", PatternAutomaton(parse(pattern)), vocab, rows)


def compile_choices(texts: Iterable[str], vocab: Vocab, rows: SharedRows | None = None) -> Grammar:
    """A grammar of some texts. Raises UsageError if there are none, ConstraintError if tokens spell none of them."""
    texts = tuple(texts)
    return Grammar(f"choices {shown(texts)}", Choices(texts), vocab, rows)


def _text_of(prefix: bytes) -> str:
    try:
        return prefix.decode()
    except UnicodeDecodeError:
        raise ConstraintError(f"a required prefix must be whole characters, not {prefix!r}") from None
