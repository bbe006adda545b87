"""Those whose masks are timed: our automaton, llguidance, xgrammar, outlines-core, on the bytes of the same tokens.

Not here: what is measured (`grammar.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any, Protocol

import numpy as np

from nbsglang.calls import Constraint
from nbsglang.engine.grammar.compiled import compile_regex
from nbsglang.engine.grammar.external import Compiler, ExternalMatcher
from nbsglang.engine.grammar.source import grammar_text
from nbsglang.engine.grammar.vocab import Vocab


class Contestant(Protocol):
    """Compiles a pattern and makes its first mask; the state that it returns has `mask()` and `accept(id)`."""

    name: str

    def compile(self, pattern: str) -> Any:
        """A state at the beginning of the text, its mask made."""


class Ours:
    """Our automaton; compiled anew each time."""

    name = "ours"

    def __init__(self, vocab: Vocab) -> None:
        self._vocab = vocab

    def compile(self, pattern: str) -> Any:
        matcher = compile_regex(pattern, self._vocab).matcher()
        matcher.mask()
        return matcher


class Llguidance:
    """llguidance, with the bytes of the same tokens."""

    name = "llguidance"

    def __init__(self, vocab: Vocab) -> None:
        self._compiler = Compiler(vocab.token_bytes, vocab.eos_ids, vocab.special_ids)

    def compile(self, pattern: str) -> Any:
        from llguidance import LLMatcher, LLParserLimits

        constraint = Constraint("regex", pattern)
        limits = LLParserLimits(verbose_errors=False)
        inner = LLMatcher(self._compiler._tokenizer, grammar_text(constraint), log_level=0, limits=limits)
        matcher = ExternalMatcher(self._compiler, constraint, inner)
        matcher.mask()
        return matcher


class Xgrammar:
    """xgrammar, with the strings of the same tokens."""

    name = "xgrammar"

    def __init__(self, vocab: Vocab) -> None:
        self._x = import_module("xgrammar")
        info = self._x.TokenizerInfo(list(vocab.token_bytes), stop_token_ids=list(vocab.eos_ids))
        self._compiler = self._x.GrammarCompiler(info, max_threads=1, cache_enabled=False)
        self._n_vocab = vocab.n_vocab

    def compile(self, pattern: str) -> Any:
        state = _XgrammarState(self._x, self._compiler.compile_regex(pattern), self._n_vocab)
        state.mask()
        return state


class _XgrammarState:
    def __init__(self, x: Any, compiled: Any, n_vocab: int) -> None:
        self._matcher = x.GrammarMatcher(compiled)
        self._row = np.zeros((1, (n_vocab + 31) // 32), np.int32)
        self.accept: Callable[[int], bool] = self._matcher.accept_token

    def mask(self) -> Any:
        self._matcher.fill_next_token_bitmask(self._row)
        return self._row[0]


class Outlines:
    """outlines-core, with the bytes of the same tokens."""

    name = "outlines-core"

    def __init__(self, vocab: Vocab) -> None:
        self._o = import_module("outlines_core")
        tokens: dict[bytes, list[int]] = {}
        for token, data in enumerate(vocab.token_bytes):
            if data:
                tokens.setdefault(data, []).append(token)
        self._vocabulary = self._o.Vocabulary(vocab.eos_ids[0], tokens)

    def compile(self, pattern: str) -> Any:
        return _OutlinesState(self._o.Guide(self._o.Index(pattern, self._vocabulary)))


class _OutlinesState:
    def __init__(self, guide: Any) -> None:
        self._guide = guide

    def mask(self) -> Any:
        return self._guide.get_tokens()

    def accept(self, token: int) -> bool:
        self._guide.advance(token)
        return True
