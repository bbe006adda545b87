"""JSON Schemas by our automaton beside llguidance, over a folder of schemas with tests.

    python -m benchmarks.schemas FOLDER                  all files of the folder and those inside it
    python -m benchmarks.schemas FOLDER --most 500       the first 500, by name
    python -m benchmarks.schemas FOLDER --bounded        values inside each other three deep at most
    python -m benchmarks.schemas FOLDER --passes 3       all of it three times, and of each time the least
    python -m benchmarks.schemas FOLDER --out out.json   the figures as JSON, with --files what became of each file

A file is an object with a schema and values that fit it or do not, as those of MaskBench are (its repository is
guidance-ai/jsonschemabench, the folder maskbench/data):

    {"schema": {...}, "tests": [{"valid": true, "data": ...}, ...]}

or a list of such objects, as in the JSON-Schema-Test-Suite (its folder tests/draft2020-12). Most schemas there ask for
no type, so any value is one.

A pass begins with a new vocabulary, so it does the same work as the one before; what differs is what else the machine
does. The mean of each pass is in the figures, too.

Values are written by `json.dumps` with `ensure_ascii=False` and its usual separators, in the order that they have. What
our automaton cannot say ("not regular") llguidance may take: so in the third row.

Not here: how the files are read (`schema_files.py`), regular expressions (`grammar.py`).
"""

from __future__ import annotations

import argparse
import gc
import json
import statistics
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from benchmarks.grammar import Llguidance
from benchmarks.report import environment
from benchmarks.schema_files import bounded, read
from nbsglang.calls import Constraint
from nbsglang.engine.fetch import smollm2
from nbsglang.engine.grammar.external import ExternalMatcher
from nbsglang.engine.grammar.matcher import Matcher
from nbsglang.engine.grammar.schema import compile_json_schema
from nbsglang.engine.grammar.schema_places import NotRegularError
from nbsglang.engine.grammar.source import grammar_text
from nbsglang.engine.grammar.vocab import Vocab
from nbsglang.errors import ConstraintError

Encode = Callable[[str], list[int]]


class Engine(Protocol):
    """Makes a matcher of a schema."""

    name: str

    def compile(self, schema: str) -> Matcher:
        """A matcher at the beginning. Raises ConstraintError or NotRegularError."""
        ...


class Ours:
    """Our automaton; compiled anew each time."""

    name = "ours"

    def __init__(self, vocab: Vocab) -> None:
        self._vocab = vocab

    def compile(self, schema: str) -> Matcher:
        """See `Engine.compile`."""
        return compile_json_schema(schema, self._vocab).matcher()


class Theirs:
    """llguidance, with the bytes of the same tokens; compiled anew each time."""

    name = "llguidance"

    def __init__(self, vocab: Vocab) -> None:
        self._compiler = Llguidance(vocab)._compiler

    def compile(self, schema: str) -> Matcher:
        """See `Engine.compile`."""
        from llguidance import LLMatcher, LLParserLimits

        constraint = Constraint("schema", schema)
        limits = LLParserLimits(verbose_errors=False)
        inner = LLMatcher(self._compiler._tokenizer, grammar_text(constraint), log_level=0, limits=limits)
        if inner.is_error():
            raise ConstraintError(inner.get_error()[:200])
        return ExternalMatcher(self._compiler, constraint, inner)


class Both:
    """Ours, and llguidance for what ours cannot say."""

    name = "ours, then llguidance"

    def __init__(self, ours: Ours, theirs: Theirs) -> None:
        self._ours, self._theirs = ours, theirs

    def compile(self, schema: str) -> Matcher:
        """See `Engine.compile`."""
        try:
            return self._ours.compile(schema)
        except NotRegularError:
            return self._theirs.compile(schema)


@dataclass
class Figures:
    """What became of the files with one engine; times in seconds."""

    fates: dict[str, str] = field(default_factory=dict)  # file -> what became of it
    firsts: list[float] = field(default_factory=list)  # compiling with the first mask
    masks: list[float] = field(default_factory=list)  # each mask along the texts
    again: list[float] = field(default_factory=list)  # the same once more, where a text has been before
    means_us: list[float] = field(default_factory=list)  # of the masks, of each pass

    def with_pass(self, other: Figures) -> Figures:
        """These and another pass over the same files: of each time the least."""
        if self.fates != other.fates:
            raise ValueError("two passes over the same files came to other results")
        pairs = ((self.firsts, other.firsts), (self.masks, other.masks), (self.again, other.again))
        least = [[min(pair) for pair in zip(mine, theirs, strict=True)] for mine, theirs in pairs]
        return Figures(self.fates, *least, self.means_us + other.means_us)

    def add(self, name: str, engine: Engine, example: dict[str, Any], encode: Encode) -> None:
        """Try one file."""
        begin = time.perf_counter()
        try:
            start = engine.compile(json.dumps(example["schema"]))
            start.mask()
        except NotRegularError as error:
            self.fates[name] = f"not regular: {error}"
            return
        except ConstraintError as error:
            self.fates[name] = f"refused: {error}"
            return
        self.firsts.append(time.perf_counter() - begin)
        try:
            self.fates[name] = self._tried(start, example["tests"], encode)
        except ConstraintError as error:  # past a budget, in the middle of a text
            self.fates[name] = f"failed: {error}"

    def _tried(self, start: Matcher, tests: Iterable[dict[str, Any]], encode: Encode) -> str:
        texts = [(bool(test["valid"]), _text(test["data"])) for test in tests]
        found = [(valid, _takes(start, text, encode, self.masks)) for valid, text in texts]
        for _, text in texts:
            _takes(start, text, encode, self.again)
        if any(taken and not valid for valid, taken in found):
            return "invalid accepted"
        return "valid refused" if any(valid and not taken for valid, taken in found) else "all right"

    def row(self) -> dict[str, float]:
        """The figures of a table."""
        kinds = Counter(fate.partition(":")[0] for fate in self.fates.values())
        names = ("all right", "invalid accepted", "valid refused", "failed", "refused", "not regular")
        cuts = statistics.quantiles(self.firsts, n=10) if len(self.firsts) > 1 else self.firsts * 9 or [0.0] * 9
        times = {"first p50 ms": 1e3 * cuts[4], "first p90 ms": 1e3 * cuts[8]}
        p99 = statistics.quantiles(self.masks, n=100)[98] if len(self.masks) > 1 else 0.0
        means = {"mask mean us": _mean_us(self.masks), "p99 us": 1e6 * p99, "again mean us": _mean_us(self.again)}
        return {**{name: kinds[name] for name in names}, **times, **means}

    def record(self, with_files: bool) -> dict[str, Any]:
        """The same for a file, with what became of each file if asked."""
        return self.row() | {"mask mean us by pass": self.means_us} | ({"files": self.fates} if with_files else {})


def measured(
    examples: dict[str, dict[str, Any]], make_vocab: Callable[[], Vocab], encode: Encode, n_passes: int
) -> dict[str, Figures]:
    """The figures of each engine over some passes."""
    found: dict[str, Figures] = {}
    for _ in range(n_passes):
        vocab = make_vocab()
        gc.collect()
        gc.freeze()  # else the collector goes through transformers again and again
        for name, figures in measure(examples, vocab, encode).items():
            found[name] = found[name].with_pass(figures) if name in found else figures
    return found


def measure(
    examples: dict[str, dict[str, Any]], vocab: Vocab, encode: Encode, engines: Iterable[Engine] | None = None
) -> dict[str, Figures]:
    """The figures of each engine, of one pass."""
    if engines is None:
        ours, theirs = Ours(vocab), Theirs(vocab)
        engines = (ours, theirs, Both(ours, theirs))
    found: dict[str, Figures] = {}
    for engine in engines:
        figures = found[engine.name] = Figures()
        for name, example in examples.items():
            figures.add(name, engine, example, encode)
            gc.collect(0)
        figures.means_us = [_mean_us(figures.masks)]
    return found


def table(found: dict[str, Figures]) -> str:
    """The figures for people."""
    rows = {name: figures.row() for name, figures in found.items()}
    titles = list(next(iter(rows.values())))
    lines = [f"{'':22}" + "".join(f"{title:>17}" for title in titles)]
    for name, row in rows.items():
        cells = (f"{row[title]:17.2f}" if title.endswith("s") else f"{row[title]:17}" for title in titles)
        lines.append(f"{name:22}" + "".join(cells))
    for name, figures in found.items():
        lines.append(f"mask mean us by pass, {name}: " + ", ".join(f"{mean:.2f}" for mean in figures.means_us))
    return "\n".join(lines)


def _takes(start: Matcher, text: str, encode: Encode, times: list[float]) -> bool:
    """Whether a text is accepted; the times of its masks are appended."""
    matcher = start.fork()
    for token in encode(text):
        begin = time.perf_counter()
        matcher.mask()
        times.append(time.perf_counter() - begin)
        if not matcher.accept(token):
            return False
    return matcher.done


def _mean_us(seconds: list[float]) -> float:
    return 1e6 * statistics.fmean(seconds) if seconds else 0.0


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def main() -> None:
    """See the module's docstring."""
    options = argparse.ArgumentParser(prog="benchmarks.schemas", description="JSON Schemas with tests")
    options.add_argument("folder", type=Path, help="files with a schema and tests each")
    options.add_argument("--most", type=int, default=None, help="no more files than these")
    options.add_argument("--bounded", action="store_true", help="values are three deep at most")
    options.add_argument("--passes", type=int, default=1, help="all of it so often, and the least of each time")
    options.add_argument("--tokenizer", default=None, help="folder or name; the default model's if not given")
    options.add_argument("--out", type=Path, default=None, help="a file for the figures as JSON")
    options.add_argument("--files", action="store_true", help="in it also what became of each file")
    given = options.parse_args()
    from transformers import AutoTokenizer

    examples = read(given.folder, given.most)
    if given.bounded:
        examples = {name: bounded(example) for name, example in examples.items()}
    if not examples:
        options.error(f"{given.folder} has no JSON file with a schema and tests")
    tokenizer = AutoTokenizer.from_pretrained(given.tokenizer or smollm2())
    make_vocab = partial(Vocab.from_tokenizer, tokenizer)
    found = measured(examples, make_vocab, partial(tokenizer.encode, add_special_tokens=False), max(given.passes, 1))
    print(f"{len(examples)} schemas, {len(tokenizer)} tokens")
    print(table(found))
    if given.out is not None:
        command = f"python -m benchmarks.schemas FOLDER --passes {given.passes} --out FILE"
        about = environment("llguidance") | {"command": command}
        rows = {name: each.record(with_files=given.files) for name, each in found.items()}
        given.out.write_text(json.dumps(about | {"schemas": len(examples)} | rows, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
