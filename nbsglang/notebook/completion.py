"""Tab completion: flags and their values on the line of `%%sgl`, the verbs of `%sgl` and what they take, and in the
body of a cell the names of the language with their keywords.

Not here: what Python knows itself, which the shell completes beside it.
"""

from __future__ import annotations

import argparse
import inspect
import re
from collections.abc import Callable, Iterable, Iterator
from functools import partial

from IPython.core.completer import (
    CompletionContext,
    IPCompleter,
    SimpleCompletion,
    SimpleMatcherResult,
    completion_matcher,
)

import nbsglang
from nbsglang import current
from nbsglang.lang.cell_names import CALLS, FORK, WORDS
from nbsglang.notebook import automata
from nbsglang.notebook.chosen import is_backend
from nbsglang.notebook.flags import VIEWS, flags_of
from nbsglang.notebook.state import State
from nbsglang.notebook.verbs import VERBS

LANGUAGE = tuple(sorted({*WORDS, FORK}))
_IDENTIFIER = "nbsglang.sgl"
_WORD = re.compile(r"[^\s]*$")
_NAME = re.compile(r"[^\W\d]\w*$|$")
_CALLED = re.compile(r"(?<![.\w])([^\W\d]\w*)\s*$")
_MODELS = ("smollm2",)
_OF_FILES = ("help", "export", "replay", "whatif")  # the shell knows files


def install(state: State, parser: argparse.ArgumentParser) -> Callable[[], None]:
    """Let the shell's completer ask us; returns what takes us out again."""
    completer = state.shell.Completer

    @completion_matcher(identifier=_IDENTIFIER, priority=60, api_version=2)  # type: ignore[untyped-decorator]
    def matcher(context: CompletionContext) -> SimpleMatcherResult:
        return _matches(state, parser, context)

    completer.custom_matchers.append(matcher)
    return partial(_remove, completer, matcher)


def _remove(completer: IPCompleter, matcher: object) -> None:
    completer.custom_matchers[:] = [other for other in completer.custom_matchers if other is not matcher]


def _matches(state: State, parser: argparse.ArgumentParser, context: CompletionContext) -> SimpleMatcherResult:
    lines = (context.full_text or "").split("\n")
    before = lines[context.cursor_line][: context.cursor_position]
    first = next((n for n, text in enumerate(lines) if text.strip()), 0)
    if context.cursor_line == first and before.startswith("%%sgl "):
        return _result(before, _WORD, _of_cell_line(state, parser, before.split()[1:], before), suppress=True)
    if before.lstrip().startswith("%sgl "):
        return _result(before, _WORD, _of_verb_line(state, before.lstrip(), before), suppress=True)
    if lines[first].startswith("%%sgl") and context.cursor_line > first:
        body = "\n".join([*lines[first + 1 : context.cursor_line], before])
        return _result(before, _NAME, _of_body(state, body), suppress=False)
    return {"completions": []}


def _result(before: str, ending: re.Pattern[str], names: Iterable[str], *, suppress: bool) -> SimpleMatcherResult:
    """Those of the names that go on with what stands before the cursor."""
    found = ending.search(before)
    fragment = found[0] if found is not None else ""
    fitting = [name for name in names if name.startswith(fragment) and name != fragment]
    return {
        "completions": [SimpleCompletion(text=name, type="magic" if suppress else "function") for name in fitting],
        "matched_fragment": fragment,
        "suppress": suppress and bool(fitting),
    }


# -------------------------------------------------------------------------------------------- the three places


def _of_cell_line(state: State, parser: argparse.ArgumentParser, words: list[str], before: str) -> Iterable[str]:
    done = words if before[-1:].isspace() else words[:-1]
    current = "" if before[-1:].isspace() else words[-1] if words else ""
    action = _action(parser, done[-1]) if done else None
    if action is not None and action.nargs != 0:
        return _values(state, action, current)
    return [flag for flag in flags_of(parser) if flag not in done]


def _of_verb_line(state: State, line: str, before: str) -> Iterable[str]:
    words = line.split()[1:]
    done = words if before[-1:].isspace() else words[:-1]
    if not done:
        return VERBS
    verb = VERBS.get(done[0])
    if verb is None:
        return ()
    action = _action(verb.parser, done[-1])
    if action is not None and action.nargs != 0:
        return _values(state, action, "")
    names = {"load": _models(state), **dict.fromkeys(_OF_FILES, ())}.get(verb.name, tuple(state.models))
    if verb.name == "fsm":
        names = tuple(automata.names(state.shell.user_ns, current.event_log()))
    if verb.name == "export" and len(done) == 2:
        return [*_runs(state), "--redact"]
    takes_name = any(not a.option_strings for a in verb.parser._actions) and len(done) == 1
    return [*(names if takes_name else ()), *(flag for flag in flags_of(verb.parser) if flag not in done)]


def _of_body(state: State, body: str) -> Iterator[str]:
    """Names of the language that the notebook does not have itself, and keywords of the call around the cursor."""
    name = _open_call(body)
    if name in CALLS:
        own = getattr(nbsglang, name)
        yield from (f"{keyword}=" for keyword in inspect.signature(own).parameters if keyword != "options")
    if not re.search(r"\.\s*\w*$", body):
        yield from (word for word in LANGUAGE if word not in state.shell.user_ns)


# ------------------------------------------------------------------------------------------------------- parts


def _action(parser: argparse.ArgumentParser, flag: str) -> argparse.Action | None:
    return next((action for action in parser._actions if flag in action.option_strings), None)


def _values(state: State, action: argparse.Action, current: str) -> Iterable[str]:
    """What may stand after a flag."""
    if action.choices is not None:
        return [str(choice) for choice in action.choices]
    if action.dest == "show":
        chosen = current.split(",")[:-1]
        start = "".join(f"{name}," for name in chosen)
        return [start + view for view in VIEWS if view not in chosen] + ([] if chosen else ["none"])
    variables = {k: v for k, v in state.shell.user_ns.items() if not k.startswith("_")}
    if action.dest == "model":
        return _models(state)
    if action.dest == "backend":
        return [*state.models, *(name for name, value in variables.items() if is_backend(value))]
    if action.dest == "start":
        return _runs(state)
    return {"device": ("auto", "cpu", "cuda"), "dtype": ("auto", "float32", "bfloat16", "float16")}.get(action.dest, ())


def _runs(state: State) -> list[str]:
    names = ((name, type(value).__name__) for name, value in state.shell.user_ns.items() if not name.startswith("_"))
    return [name for name, kind in names if kind in ("CellRun", "ProgramState")]


def _models(state: State) -> tuple[str, ...]:
    modules = (k for k, v in state.shell.user_ns.items() if not k.startswith("_") and _is_module(v))
    return (*dict.fromkeys([*_MODELS, *state.models, *modules]),)


def _is_module(value: object) -> bool:
    return not isinstance(value, type) and callable(getattr(value, "parameters", None)) and hasattr(value, "config")


def _open_call(body: str) -> str:
    """The name before the innermost bracket that is open at the end of the text; strings are passed over."""
    opened: list[int] = []
    quote = ""
    for at, char in enumerate(body):
        if quote:
            quote = "" if char in (quote, "\n") else quote
        elif char in "\"'":
            quote = char
        elif char in "([{":
            opened.append(at)
        elif char in ")]}" and opened:
            opened.pop()
    found = _CALLED.search(body[: opened[-1]]) if opened and body[opened[-1]] == "(" else None
    return found[1] if found is not None else ""
