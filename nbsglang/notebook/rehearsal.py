"""`--dry-run`: a cell without a model. Its streams with made-up answers, how much its prompts would share, and what in
this is a guess.

The prediction begins with an empty cache that is large enough. Nothing is bound to a name.

Not here: the made-up answers (`nbsglang/engine/dry.py`), which lines of a cell depend on answers (`guesses.py`).
"""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

from nbsglang.calls import Backend, Generated, Prompt, Segment
from nbsglang.engine.dry import Assumed, DryBackend, Words
from nbsglang.errors import TimedOut
from nbsglang.events import EventLog
from nbsglang.lang.cell import Cell
from nbsglang.lang.cell_run import CellRun
from nbsglang.lang.state import ProgramState
from nbsglang.notebook.guesses import Guess, guesses
from nbsglang.viz.fold import View
from nbsglang.viz.gallery import Gallery
from nbsglang.viz.marks import Marks
from nbsglang.viz.page import page
from nbsglang.viz.picture import Picture
from nbsglang.viz.scene import Scene
from nbsglang.viz.text import shown

if TYPE_CHECKING:
    from nbsglang.engine.prompt import Renderer
    from nbsglang.engine.tokenizer import Tokenizer

_MAX_NOTES = 8
_MAX_S = 30.0  # a loop that goes on until the model says a certain thing would go on for ever


class EngineWords:
    """The words of an engine's tokenizer and chat template, without the engine."""

    def __init__(self, engine: Any) -> None:
        from nbsglang.engine.prompt import Renderer
        from nbsglang.engine.tokenizer import Tokenizer

        self._tokenizer: Tokenizer = Tokenizer(engine.tokenizer)
        self._renderer: Renderer = Renderer(self._tokenizer)

    def render(self, prompt: Prompt) -> str:
        """The prompt as the model would see it."""
        return self._renderer.render(prompt)

    def encode(self, prompt: Prompt) -> list[int]:
        """Its token ids."""
        return self._renderer.encode(prompt).ids

    def text_of(self, token: int) -> str:
        """A token as it is shown."""
        return self._tokenizer.token_text(token)


class CharWords:
    """A token for each character, for backends that have no tokenizer here."""

    def __init__(self, backend: Backend) -> None:
        self._render = backend.renderer

    def render(self, prompt: Prompt) -> str:
        """The prompt as the backend would see it."""
        return self._render(prompt)

    def encode(self, prompt: Prompt) -> list[int]:
        """Its characters, and for what was made up its ids."""
        ids: list[int] = []
        text = self._render(tuple(_marked(segment, n) for n, segment in enumerate(prompt)))
        marks = {_mark(n): s.ids for n, s in enumerate(prompt) if isinstance(s, Generated) and s.ids}
        for char in text:
            ids += marks.get(char) or [ord(char)]
        return ids

    def text_of(self, token: int) -> str:
        """The character."""
        return chr(token) if token < 0x110000 else ""


def rehearse(
    cell: Cell,
    namespace: dict[str, Any],
    backend: Backend,
    start: CellRun | ProgramState | None,
    options: dict[str, Any],
    show: tuple[str, ...],
) -> Picture:
    """Run the cell on made-up answers; a picture of what it would do, with the views in `show` that there are.

    Raises UsageError for options that make no sense. What the cell's Python raises ends the prediction, and is told.
    """
    engine: Any = backend if hasattr(backend, "tokenizer") else None
    words: Words = EngineWords(engine) if engine is not None else CharWords(backend)
    n_slots = int(backend.stats().get("kv_tokens", 0))
    log = EventLog()
    dry = DryBackend(words, log, str(getattr(engine, "name", "characters")), n_slots)
    run = cell.prepare(namespace, start=start, backend=dry, log=log, **{**options, "timeout": _MAX_S})
    error: Exception | None = None
    try:
        run.execute()
    except Exception as raised:
        error = raised
    return _picture(run, cell, dry, error, show, has_words=engine is not None)


def _picture(
    run: CellRun, cell: Cell, dry: DryBackend, error: Exception | None, show: tuple[str, ...], *, has_words: bool
) -> Picture:
    view, marks = View(dry.source, run.source), Marks()
    view.tree.watched.append(marks)
    for event in dry.log.since():
        view.apply(event)
    streams = tuple(view.streams_of(run.source))
    title = f"{streams[0].label if streams else 'cell'} (dry run: no model was called)"
    scene = Scene(view, streams, marks, title, "done" if error is None else "failed")
    gallery = Gallery([name for name in show if name in ("streams", "tree")])
    facts = _facts(view, dry, has_words)
    notes = _notes(cell, dry, error)
    table = "".join(
        f'<span style="display:inline-block;margin-right:18px"><span style="opacity:.75">{escape(name)}</span> '
        f"<b>{escape(value)}</b></span>"
        for name, value in facts
    )
    listed = "".join(f"<li>{escape(note)}</li>" for note in notes)
    top = f'<div style="margin:2px 0 6px">{table}</div><ul style="margin:0 0 6px;padding-left:18px">{listed}</ul>'
    line = " · ".join(f"{name} {value}" for name, value in facts)
    text = "\n".join([gallery.text(scene), line, *(f"- {note}" for note in notes)])
    return Picture(gallery.html(scene) + page("", top), text)


def _facts(view: View, dry: DryBackend, has_words: bool) -> list[tuple[str, str]]:
    totals = view.totals
    n_held = sum(len(node.tokens) for node in view.nodes.values())
    unit = "tokens" if has_words else "characters"
    facts = [
        ("calls", f"{dry.n_calls}"),
        (f"prompt {unit}", f"{totals.n_prompt:,}"),
        ("shared", f"{totals.n_cached:,}"),
        ("to compute", f"{totals.n_prompt - totals.n_cached:,}"),
        ("hit rate", f"{totals.hit_rate:.0%}"),
        ("to write, at most", f"{totals.n_generated:,}"),
        ("cache afterwards", f"{n_held:,}"),
    ]
    n_slots = view.ready.n_slots if view.ready is not None else 0
    return (
        [*facts, ("pool", f"{n_slots:,}{' (too small for all of it)' if n_held > n_slots else ''}")]
        if n_slots
        else facts
    )


def _notes(cell: Cell, dry: DryBackend, error: Exception | None) -> list[str]:
    """What was assumed, and which lines may go another way."""
    notes = [*_assumed(dry.assumed)]
    found = guesses(cell.source)
    notes += [_guess(guess, cell.first_line) for guess in found[:_MAX_NOTES]]
    if len(found) > _MAX_NOTES:
        notes.append(f"… and {len(found) - _MAX_NOTES} more lines that depend on answers")
    if isinstance(error, TimedOut):
        notes.append(f"stopped after {_MAX_S:g} s: with these answers the cell may never end")
    elif error is not None:
        words = str(error).partition("\n")[0]
        notes.append(f"with these answers the cell ended early: {type(error).__name__}: {shown(words, 160)}")
    elif not found:
        notes.append(
            "no line of the cell depends on what an answer says, so its calls are these, whatever the model writes"
        )
    return notes


def _assumed(assumed: list[Assumed]) -> list[str]:
    kinds: dict[tuple[str, str], list[int]] = {}
    for one in assumed:
        kinds.setdefault((one.name or "gen", one.why), []).append(one.n_tokens)
    notes = []
    for (name, why), counts in [*kinds.items()][:_MAX_NOTES]:
        times = f" ({len(counts)} times)" if len(counts) > 1 else ""
        n = f"{max(counts)} token{'s'[: max(counts) != 1]}, " if max(counts) else ""
        notes.append(f"{shown(name, 40)}{times} was assumed: {n}{why}")
    if len(kinds) > _MAX_NOTES:
        notes.append(f"… and {len(kinds) - _MAX_NOTES} more")
    return notes


def _guess(guess: Guess, first_line: int) -> str:
    line = guess.line + first_line - 1
    return (
        f"line {line} depends on {', '.join(guess.names)}, and was followed for the made-up answer only: {guess.text}"
    )


def _marked(segment: Segment, n: int) -> Segment:
    """The n-th segment, with a mark in the place of a text whose ids are known."""
    return segment._replace(text=_mark(n)) if isinstance(segment, Generated) and segment.ids else segment


def _mark(n: int) -> str:
    """A private character that stands for the n-th segment while the prompt is rendered."""
    return chr(0xF0000 + n % 0xFFFD)
