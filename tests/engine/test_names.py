"""Texts of tokens in a log that forgets: whoever reads it late finds all that is still in the tree named.

Not here: what views make of them (`tests/viz/`).
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from nbsglang.engine.engine import Engine
from nbsglang.events import Control, EventLog, Ready, Snapshot, StreamText, TokenTexts
from nbsglang.viz.fold import View, fold
from tests.tiny import byte_tokenizer, tiny_model

CAPACITY = 400
GUIDE = "quiz: jump over"  # named once, long ago


@pytest.fixture
def engine() -> Iterator[Engine]:
    log = EventLog(CAPACITY)
    with Engine(tiny_model("llama"), tokenizer=byte_tokenizer(), kv_tokens=500, log=log, verify=False) as made:
        yield made


def unnamed(view: View) -> set[int]:
    used = {token for node in view.nodes.values() for token in node.tokens}
    used |= {token for request in view.requests.values() for token in request.generated}
    return used - view.texts.keys()


def test_a_late_reader_knows_tree_and_texts_at_any_time(engine: Engine) -> None:
    engine.generate(GUIDE, max_tokens=4, temperature=0)
    checked = 0
    for n in range(40):  # "n" has few letters in common with the guide
        engine.generate(f"{GUIDE if n % 20 == 0 else ''}{n}", max_tokens=8, temperature=0)
        events = engine.log.since(0)
        if isinstance(events[0].body, Ready) or events[0].seq < CAPACITY:
            continue
        view = fold(events, engine.source)
        assert view.complete
        assert not unnamed(view)
        checked += 1
    assert checked > 10


def test_an_engine_that_others_have_outlived_names_its_tokens_again(engine: Engine) -> None:
    engine.generate(GUIDE, max_tokens=4, temperature=0)
    for _ in range(2 * CAPACITY):
        engine.log.emit("another", StreamText("s", "much happens elsewhere"))
    engine.generate(GUIDE, max_tokens=4, temperature=0)
    view = fold(engine.log.since(0), engine.source)
    assert view.complete
    assert not unnamed(view)
    assert any(view.text_of(node.tokens).startswith(GUIDE[:10]) for node in view.nodes.values())


def test_what_the_log_still_has_is_not_said_twice() -> None:
    log = EventLog()
    with Engine(tiny_model("llama"), tokenizer=byte_tokenizer(), kv_tokens=500, log=log, verify=False) as engine:
        for n in range(5):
            engine.generate(f"{GUIDE}{n % 2}", max_tokens=8, temperature=0)
        engine.log.emit("another", Control("flush", ""))
    named = [token for event in log.since(0) if isinstance(event.body, TokenTexts) for token in event.body.ids]
    assert len(named) == len(set(named)) > 0
    assert not any(isinstance(event.body, Snapshot) for event in log.since(0))
