"""Grammars in llguidance's variant of Lark, for one vocabulary, behind the door that our own constraints have.

Not here: how llguidance fills the contract (`external.py`).
"""

from __future__ import annotations

from functools import lru_cache

from nbsglang.calls import Constraint
from nbsglang.engine.grammar.external import Compiler
from nbsglang.engine.grammar.matcher import Matcher
from nbsglang.engine.grammar.vocab import Vocab


class ParsedGrammar:
    """A grammar that is compiled; `matcher()` may be called on any thread."""

    def __init__(self, compiler: Compiler, constraint: Constraint) -> None:
        self._compiler = compiler
        self._constraint = constraint
        compiler.compile(constraint)  # that it can be used shows now

    def matcher(self) -> Matcher:
        """A `Matcher` at the beginning of the text; it belongs to one thread."""
        return self._compiler.compile(self._constraint)


def compile_grammar(grammar: str, vocab: Vocab) -> ParsedGrammar:
    """A grammar of the texts that `start` of a Lark grammar derives. Raises ConstraintError, which says why."""
    return ParsedGrammar(_compiler(vocab), Constraint("grammar", grammar))


@lru_cache(maxsize=2)
def _compiler(vocab: Vocab) -> Compiler:
    """llguidance reads the whole vocabulary, which takes a while."""
    return Compiler(vocab.token_bytes, vocab.eos_ids, vocab.special_ids)
