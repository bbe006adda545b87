"""Constrained decoding by our automaton beside llguidance (and xgrammar, outlines-core where they are installed).

    python -m benchmarks.grammar                      the default model's vocabulary, nine regexes
    python -m benchmarks.grammar --walks 10000        and ten thousand random walks, each of which must end in a match
    python -m benchmarks.grammar --out masks.json     the figures as JSON too

Times are of one thread: the best of some runs for compiling with the first mask, medians for what is repeated.

Not here: generation with a model (`guided.py`).
"""

from __future__ import annotations

import argparse
import gc
import json
import random
import re
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.grammar_peers import Contestant, Llguidance, Ours, Outlines, Xgrammar
from benchmarks.report import environment
from nbsglang.engine.fetch import smollm2
from nbsglang.engine.grammar.compiled import Grammar, compile_regex
from nbsglang.engine.grammar.vocab import Vocab

FIELD = r"[\w\d\s]{1,16}"
CHARACTER = (
    rf'\{{\n    "name": "{FIELD}",\n    "house": "(Gryffindor|Slytherin|Ravenclaw|Hufflepuff)",\n    '
    r'"blood status": "(Pure-blood|Half-blood|Muggle-born)",\n    "occupation": "(student|teacher|auror|'
    r'ministry of magic|death eater|order of the phoenix)",\n    "wand": \{\n        "wood": "'
    rf'{FIELD}",\n        "core": "{FIELD}",\n        "length": [0-9]{{1,2}}\.[0-9]{{0,2}}\n    \}},\n    '
    rf'"alive": "(Alive|Deceased)",\n    "patronus": "{FIELD}",\n    "bogart": "{FIELD}"\n\}}'
)
HARRY = """{
    "name": "Harry Potter",
    "house": "Gryffindor",
    "blood status": "Half-blood",
    "occupation": "student",
    "wand": {
        "wood": "Holly",
        "core": "Phoenix feather",
        "length": 11.0
    },
    "alive": "Alive",
    "patronus": "Stag",
    "bogart": "Dementor"
}"""
EXPRESS = "Hogwarts express leaves from platform nine and three quarters at eleven o'clock sharp"
CASES = {
    "ip": (r"((25[0-5]|2[0-4]\d|[01]?\d\d?)\.){3}(25[0-5]|2[0-4]\d|[01]?\d\d?)", "192.168.100.254"),
    "date": (r"\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])", "2024-02-29"),
    "email": (r"[a-zA-Z0-9._%+\-]+@[a-zA-Z0-9.\-]+\.[a-zA-Z]{2,10}", "harry.potter@hogwarts.ac.uk"),
    "phone": (r"(\+1 )?\(\d{3}\) \d{3}-\d{4}", "+1 (415) 555-0132"),
    "character": (CHARACTER, HARRY),
    "strings": (r'\[("[^"\\\n]*"(, "[^"\\\n]*")*)?\]', '["Chamber of Secrets", "Goblet of Fire", "Привет, мир"]'),
    "many a": ("(a|aa|aaa)*b{3,50}", "a" * 60 + "b" * 40),
    "unicode": ("[一-鿿]{2,12} [а-яА-ЯёЁ]+ [😀-🙏]{1,3}", "霍格沃茨特快列车 Привет 😀😛"),
    "words": (r"\w{3,40} \S+ .{0,200}", EXPRESS),
}


# ------------------------------------------------------------------------------------------ measures


def best_ms(run: Callable[[], object], seconds: float = 0.5) -> float:
    """The best time of a call, in ms, over about so many seconds."""
    times = []
    end = time.perf_counter() + seconds
    while not times or (time.perf_counter() < end and len(times) < 200):
        begin = time.perf_counter()
        run()
        times.append(1e3 * (time.perf_counter() - begin))
    return min(times)


def masks_us(state: Any, ids: list[int]) -> list[float]:
    """The time of each mask along a text, in µs, the first left out."""
    times = []
    for token in ids:
        assert state.accept(token) is not False, f"token {token} of the text was refused"
        begin = time.perf_counter()
        state.mask()
        times.append(1e6 * (time.perf_counter() - begin))
    return times


def revisit_us(pattern: str, vocab: Vocab, ids: list[int]) -> float:
    """Our median time of a mask, in µs, where another text was before."""
    grammar = compile_regex(pattern, vocab)
    masks_us(grammar.matcher(), ids)
    times = []
    for _ in range(20):
        matcher = grammar.matcher()
        for token in ids:
            matcher.accept(token)
            begin = time.perf_counter()
            for _ in range(10):
                matcher.mask()
            times.append(1e5 * (time.perf_counter() - begin))
    return statistics.median(times)


def all_masks(pattern: str, vocab: Vocab) -> tuple[float, int, int]:
    """Time in ms of the masks of all states, the automaton being there; the numbers of states and of different rows."""
    grammar = compile_regex(pattern, vocab)
    index = grammar.index
    states = [index.table.start]
    for state in states:
        states += [after for after in dict.fromkeys(index.table.after(state)) if after >= 0 and after not in states]
    begin = time.perf_counter()
    for state in states:
        index.row((state, b""))
    return 1e3 * (time.perf_counter() - begin), len(states), len(grammar.rows)


def batch_ms(vocab: Vocab, theirs: Llguidance, n_rows: int = 64) -> dict[str, float]:
    """A step's masks, in ms, for a batch of texts inside the same kind of field."""
    draw = random.Random(0)
    grammar, pattern = compile_regex(f'"{FIELD}"', vocab), f'"{FIELD}"'
    ours, others = [], []
    for _ in range(n_rows):
        matcher, other = grammar.matcher(), theirs.compile(pattern)
        for token in _walk(grammar, draw, draw.randint(1, 4))[0]:
            if token not in vocab.eos_ids:
                matcher.accept(token)
                other.accept(token)
        ours.append(matcher)
        others.append(other)
    out = np.zeros((n_rows, vocab.n_words), np.int32)
    gather = best_ms(lambda: grammar.rows.gather([matcher.row for matcher in ours], out))
    fill = best_ms(lambda: [other.fill(row) for other, row in zip(others, out, strict=True)])
    return {"ours": gather, "llguidance": fill}


def _walk(grammar: Grammar, draw: random.Random, longest: int) -> tuple[list[int], bool]:
    """A random text of a grammar, and whether it came to its end within so many tokens."""
    matcher, ids = grammar.matcher(), []
    eos = set(grammar.vocab.eos_ids)
    while not matcher.ended and len(ids) < longest:
        tokens = np.flatnonzero(np.unpackbits(matcher.mask().view(np.uint8), bitorder="little"))
        assert len(tokens), "an empty row"
        has_eos = bool((matcher.mask() & grammar.vocab.eos_row).any())
        assert matcher.done == has_eos, "EOS is not where the matches are"
        if matcher.done and draw.random() < 0.2:
            return ids, True
        tokens = tokens[~np.isin(tokens, list(eos))]
        token = int(tokens[draw.randrange(len(tokens))])
        assert token not in grammar.vocab.special_ids, "a special token inside the text"
        assert matcher.accept(token), "a token of the mask was refused"
        ids.append(token)
    return ids, matcher.ended


def walks(vocab: Vocab, n_walks: int) -> dict[str, int]:
    """Walk at random; raises AssertionError for a text that ends without a match. Returns how many ended."""
    ended = {}
    for name, (pattern, _) in CASES.items():
        grammar, draw = compile_regex(pattern, vocab), random.Random(name)
        ended[name] = 0
        for _ in range(n_walks // len(CASES) + 1):
            ids, is_whole = _walk(grammar, draw, 400)
            text = b"".join(vocab.token_bytes[token] for token in ids)
            assert not is_whole or re.fullmatch(pattern, text.decode()), f"{text!r} is no match of {pattern!r}"
            ended[name] += is_whole
    return ended


# --------------------------------------------------------------------------------------------- report


def measure(vocab: Vocab, encode: Callable[[str], list[int]], peers: list[Contestant]) -> dict[str, Any]:
    """All figures for each regex."""
    figures: dict[str, Any] = {}
    for name, (pattern, text) in CASES.items():
        ids = encode(text)
        figures[name] = {}
        for peer in peers:
            try:
                first = best_ms(lambda peer=peer, pattern=pattern: peer.compile(pattern))
                times = sorted(masks_us(peer.compile(pattern), ids))
            except Exception as error:  # a pattern or a text that this one does not take: that is its figure
                figures[name][peer.name] = {"error": str(error)[:100]}
                continue
            figures[name][peer.name] = {"first ms": first, "mask us": statistics.median(times), "max us": times[-1]}
        figures[name]["ours"]["revisit us"] = revisit_us(pattern, vocab, ids)
    return figures


def table(figures: dict[str, Any], peers: list[Contestant]) -> str:
    """The figures for people: compile with first mask in ms; median and longest of the text's masks in µs."""
    lines = [f"{'':12}" + "".join(f"{peer.name:>26}" for peer in peers) + f"{'ours, revisited':>18}"]
    for name, row in figures.items():
        cells = [f"{name:12}"]
        for peer in peers:
            cell = row[peer.name]
            numbers = [cell.get(key, float("nan")) for key in ("first ms", "mask us", "max us")]
            cells.append(f"{numbers[0]:9.2f}{numbers[1]:8.1f}{numbers[2]:9.0f}")
        lines.append("".join(cells) + f"{row['ours']['revisit us']:16.2f}")
    return "\n".join(lines)


def main() -> None:
    """See the module's docstring."""
    options = argparse.ArgumentParser(prog="benchmarks.grammar", description="masks of constraints")
    options.add_argument("--tokenizer", default=None, help="folder or name; the default model's if not given")
    options.add_argument("--walks", type=int, default=0, help="random walks, spread over the regexes")
    options.add_argument("--out", type=Path, default=None, help="a file for the figures as JSON")
    given = options.parse_args()
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(given.tokenizer or smollm2())
    vocab = Vocab.from_tokenizer(tokenizer)
    found: dict[str, Any] = {"n_vocab": vocab.n_vocab}
    found["build ms"] = best_ms(lambda: Vocab(vocab.token_bytes, vocab.eos_ids, vocab.special_ids), 1)
    llguidance = Llguidance(vocab)
    peers: list[Contestant] = [Ours(vocab), llguidance]
    for optional in (Xgrammar, Outlines):
        try:
            peers.append(optional(vocab))
        except ImportError as error:
            print(f"{optional.name} is left out: {error}")
    gc.disable()
    found["regexes"] = measure(vocab, lambda text: tokenizer.encode(text, add_special_tokens=False), peers)
    print("compile + first mask, ms; median and longest mask along the text, us")
    print(table(found["regexes"], peers))
    times = [all_masks(CHARACTER, vocab) for _ in range(5)]
    found["all masks ms"], found["states"], found["rows"] = min(times)
    print(f"all masks of 'character': {min(times)[0]:.1f} ms for {times[0][1]} states, {times[0][2]} different rows")
    found["batch ms"] = batch_ms(vocab, llguidance)
    print("a batch of 64, ms a step:", {name: round(ms, 4) for name, ms in found["batch ms"].items()})
    print(f"building the vocabulary: {found['build ms']:.0f} ms")
    gc.enable()
    if given.walks:
        found["walks"] = walks(vocab, given.walks)
        print("walks that came to their end:", found["walks"])
    if given.out:
        about = environment("llguidance", "xgrammar", "outlines-core") | {"command": "python -m benchmarks.grammar"}
        given.out.write_text(json.dumps(about | found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
