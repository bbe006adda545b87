"""The verbs of `%sgl`: one function for each, and the table that help and completion read.

Not here: what they know about memory, models and the machine (`models.py`, `memory.py`, `doctor.py`).
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any, NamedTuple

from IPython.core.error import UsageError
from IPython.core.magic_arguments import MagicArgumentParser
from IPython.display import display

from nbsglang import current, errors
from nbsglang.calls import Backend
from nbsglang.notebook import arguments, automata, doctor, exports, models, reckoning, status
from nbsglang.notebook.chosen import backend_named, flush, is_engine, log_of
from nbsglang.notebook.failures import shown_to_user
from nbsglang.notebook.flags import parse_words, words_of
from nbsglang.notebook.nearest import did_you_mean
from nbsglang.notebook.shown import show_engine
from nbsglang.notebook.state import State

_Act = Callable[[State, Any], object]


class Verb(NamedTuple):
    """A verb, its parser, and what it does with the parsed words; a verbatim one gets the rest of the line as it is."""

    name: str
    what: str
    parser: MagicArgumentParser
    act: _Act
    is_verbatim: bool = False


def run_verb(state: State, line: str) -> object:
    """Do what the line of `%sgl` says. Raises UsageError, with the nearest verb where one is unknown."""
    if is_verbatim(line):
        name, rest = line.split(None, 1)
        return VERBS[name].act(state, rest.strip())
    words = words_of(line) or ["help"]
    verb = VERBS.get(words[0])
    if verb is None:
        hint = did_you_mean(words[0], VERBS, f"; there are {', '.join(VERBS)}")
        raise UsageError(f"%sgl has no verb {words[0]!r}{hint}")
    return verb.act(state, parse_words(verb.parser, words[1:], f"%sgl {verb.name}"))


def is_verbatim(line: str) -> bool:
    """Whether the verb takes the rest of its line as it is: the braces and backslashes of a pattern are its own."""
    words = line.split(None, 1)
    return len(words) == 2 and (verb := VERBS.get(words[0])) is not None and verb.is_verbatim


def verbs_text() -> str:
    """The verbs with a line for each."""
    width = max(len(_usage(verb)) for verb in VERBS.values())
    return "\n".join(f"    %sgl {_usage(verb):{width}}  {verb.what}" for verb in VERBS.values())


# ------------------------------------------------------------------------------------------------ what they do


def _load(state: State, given: Any) -> None:
    names = ("device", "dtype", "kv_tokens", "kv_memory", "max_batch", "chunk_tokens", "policy", "seed")
    options = {name: getattr(given, name) for name in names if getattr(given, name) is not None}
    if given.allow_pickle:
        options["allow_pickle"] = True
    if given.tokenizer:
        options["tokenizer"] = state.shell.user_ns.get(given.tokenizer, given.tokenizer)
    before = _held_loosely(state, given.name or given.model)
    try:
        loaded = models.load_model(state, given.model, given.name or "", options=options)
    except KeyboardInterrupt:
        with shown_to_user(state.shell, ""):  # a hundred lines of other libraries help nobody
            raise
    current.set_default_backend(loaded.backend)
    if before() is loaded.backend:
        print(f"{given.name or given.model} is loaded already: {models.described(loaded.backend)}")


def _held_loosely(state: State, name: str) -> Callable[[], Backend | None]:
    """What gives the backend of that name as long as it is there: a variable would keep two models in memory."""
    found = state.models.get(name)
    return (lambda: None) if found is None else weakref.ref(found.backend)


def _status(state: State, given: Any) -> None:
    print(status.status_text(state))


def _tree(state: State, given: Any) -> None:
    engine: Any = _engine(state, given.name, "tree")
    show_engine(state.shell, engine.log, engine.source, status.tree_shown(engine), title=engine.name)


def _export(state: State, given: Any) -> None:
    print(exports.export(state, _default(), given.file, given.run or "", redact=given.redact))


def _replay(state: State, given: Any) -> None:
    exports.replay(state, given.file)


def _whatif(state: State, given: Any) -> None:
    if given.file:
        events, source = reckoning.saved(given.file)
    else:
        engine: Any = _engine(state, None, "whatif")
        events, source = log_of(engine).since(0), engine.source
    display(reckoning.reckoned(events, source, given.kv_tokens or [], given.policy))  # type: ignore[no-untyped-call]


def _fsm(state: State, words: str) -> None:
    default = _default()
    try:
        constraint = automata.meant(words, state.shell.user_ns, current.event_log())
        if default is not None and is_engine(default):
            picture = automata.logged(default, constraint)
        else:
            picture = automata.fsm(constraint)
    except errors.UsageError as error:
        raise UsageError(str(error)) from None
    display(picture)  # type: ignore[no-untyped-call]


def _reset(state: State, given: Any) -> None:
    backend = _backend(state, given.name)
    n_tokens = flush(backend)
    print("the cache is empty" + ("" if n_tokens is None else f"; it held {n_tokens:,} tokens"))


def _free(state: State, given: Any) -> None:
    running = state.running()
    if running:
        still = "1 run in the background still uses" if len(running) == 1 else f"{len(running)} runs still use"
        raise UsageError(f"{still} models: `%sgl cancel` ends {'it' if len(running) == 1 else 'them'}")
    before = models.memory_now()
    closed = [] if given.name in state.models else _close_other(state, given.name)
    names = [given.name] if given.name in state.models else [] if given.name else list(state.models)
    print(models.free(state, names, closed, before))


def _close_other(state: State, name: str | None) -> list[str]:
    """Close what a variable of this name holds, without a name the default engine; the names of what is none of ours.

    A function of its own: a variable would keep the engine while the memory is measured.
    """
    backend: Any = backend_named(state, name) if name else _default()
    if not name and not is_engine(backend):
        return []
    backend.close()
    is_ours = any(loaded.backend is backend for loaded in state.models.values())
    return [] if is_ours else [name or backend.name]


def _cancel(state: State, given: Any) -> None:
    running = state.running()
    for run in running:
        run.cancel()
    print(f"{len(running)} run{'' if len(running) == 1 else 's'} cancelled" if running else "nothing is running")


def _doctor(state: State, given: Any) -> None:
    print(doctor.report(state))


def _help(state: State, given: Any) -> None:
    print(f"{verbs_text()}\n\n%%sgl? explains the cells, %config SglMagics their settings.")


def _default() -> Backend | None:
    try:
        return current.default_backend()
    except errors.UsageError:
        return None


def _backend(state: State, name: str | None) -> Backend:
    backend = backend_named(state, name) if name else _default()
    if backend is None:
        raise UsageError("no model is loaded: `%sgl load smollm2` loads one")
    return backend


def _engine(state: State, name: str | None, verb: str) -> Backend:
    backend = _backend(state, name)
    if not is_engine(backend):
        raise UsageError(f"%sgl {verb} needs a model in this process, not {backend!r}")
    return backend


# --------------------------------------------------------------------------------------------------- the table


def _verb(
    name: str, what: str, act: _Act, add: Callable[[Any], object] | None = None, *, is_verbatim: bool = False
) -> Verb:
    parser = MagicArgumentParser(f"sgl {name}", description=what)  # type: ignore[no-untyped-call]
    if add is not None:
        add(parser)
    return Verb(name, what, parser, act, is_verbatim)


def _usage(verb: Verb) -> str:
    places = [a for a in verb.parser._actions if not a.option_strings]
    words = [f"[{a.metavar}]" if a.nargs == "?" else str(a.metavar) for a in places]
    more = {"load": ["[--as NAME]", "[options]"], "whatif": ["[--kv-tokens N ...]", "[--policy P]"]}
    return " ".join([verb.name, *words, *more.get(verb.name, [])])


_ALL = (
    _verb(
        "load", "let cells use a model: a name, a folder, a GGUF file, or a variable", _load, arguments.load_arguments
    ),
    _verb("status", "the models, memory, the KV pool, the cache, what is running", _status),
    _verb("tree", "the radix tree of the KV cache, live where widgets are", _tree, arguments.name_argument),
    _verb(
        "fsm",
        "the automaton of a pattern, or of what a variable or a gen holds",
        _fsm,
        arguments.pattern,
        is_verbatim=True,
    ),
    _verb("whatif", "the hit rate with other pools and other eviction", _whatif, arguments.whatif_arguments),
    _verb(
        "export", "write .html, .jsonl, .json (a trace), .svg or .dot (the tree)", _export, arguments.export_arguments
    ),
    _verb("replay", "show a log that was saved as .jsonl", _replay, arguments.file_argument),
    _verb("reset", "empty the KV cache; the model stays", _reset, arguments.name_argument),
    _verb("free", "close the models and give their memory back", _free, arguments.name_argument),
    _verb("cancel", "cancel the runs in the background", _cancel),
    _verb("doctor", "what this notebook can do, and what to do where it cannot", _doctor),
    _verb("help", "these lines", _help),
)
VERBS: dict[str, Verb] = {verb.name: verb for verb in _ALL}
