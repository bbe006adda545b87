"""Programs: functions of a state, and what can be done with them.

Not here: how they are run (`conduct.py`, `batch.py`), the options (`options.py`).
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from functools import partial, update_wrapper
from typing import Any, NamedTuple, TypeVar, overload

from nbsglang.errors import UsageError
from nbsglang.lang import batch
from nbsglang.lang.conduct import Call, run_here, start_thread, wait_until_over
from nbsglang.lang.options import BATCH_DEFAULTS, RUN_DEFAULTS, Options, run_options
from nbsglang.lang.state import ProgramState

_NO_SPECULATION = "num_api_spec_tokens has no effect: it is for backends behind an API, which are not there yet"
_Method = TypeVar("_Method", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class _Prepared:
    """A function with its arguments, to be called with a state. A batch holds many, so it is one small object."""

    func: Callable[..., Any]
    args: tuple[Any, ...]
    named: Mapping[str, Any]

    def __call__(self, state: ProgramState) -> Any:
        return self.func(state, *self.args, **self.named)


class Manner(NamedTuple):
    """How a program is run on this thread, and what a run gives that has begun otherwise: for one of a batch, say."""

    run: Callable[[str, Call, Options], ProgramState]
    result: Callable[[ProgramState], ProgramState]


def _shows(options: Mapping[str, Any]) -> Callable[[_Method], _Method]:
    """Let help and completion show these options, with their defaults, as keywords of a method.

    They are no keywords in truth: which of those given are options is only known from the program's own parameters.
    """

    def mark(method: _Method) -> _Method:
        found = inspect.signature(method)
        own = [p for p in found.parameters.values() if p.kind is not p.VAR_KEYWORD]
        rest = [p for p in found.parameters.values() if p.kind is p.VAR_KEYWORD]
        shown = [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=v) for name, v in options.items()]
        method.__signature__ = found.replace(parameters=[*own, *shown, *rest])  # type: ignore[attr-defined]
        return method

    return mark


class Program:
    """A function whose first parameter is a state, to be run with a backend. Made by `function`.

    `p(...)` runs it like `p.run(...)`; `p(s, ...)` with a state runs it as a part of that state's program.
    """

    def __init__(
        self,
        func: Callable[..., Any],
        num_api_spec_tokens: int | None = None,
        bound: Mapping[str, Any] | None = None,
        manner: Manner | None = None,
    ) -> None:
        self.func = func
        self.name: str = getattr(func, "__name__", type(func).__name__)
        self.num_api_spec_tokens = num_api_spec_tokens
        self.bound: Mapping[str, Any] = dict(bound or {})
        self._manner = manner or Manner(run_here, lambda state: state)
        self._signature = inspect.signature(func)
        names = list(self._signature.parameters)
        if not names:
            raise UsageError(f"{self.name} needs a first parameter, the state: def {self.name}(s, ...)")
        self.arg_names = tuple(names[1:])
        update_wrapper(self, func)

    @_shows(RUN_DEFAULTS)
    def run(self, *args: Any, **kwargs: Any) -> ProgramState:
        """Run it and wait for the end; returns the state. With `stream=True` returns at once, to be iterated.

        Keywords that are the program's own parameters are its arguments, also where an option has the same name.
        The other options are the sampling of gens that do not say it themselves (`max_new_tokens` ...), and
        `backend`, `log`, `timeout` (seconds), `seed` (gives each gen a seed of its own), `stream`.
        Raises what the program raises, and ProgramError for a failed call whose error nobody has read.
        """
        call, options, stream = self.prepared(args, kwargs)
        if stream:
            return self._manner.result(start_thread(self.name, call, options)[0])
        return self._manner.run(self.name, call, options)

    @_shows({name: default for name, default in RUN_DEFAULTS.items() if name != "stream"})
    async def arun(self, *args: Any, **kwargs: Any) -> ProgramState:
        """Run it without blocking the event loop: the program's Python runs on a thread. Cancelling cancels it."""
        options, arguments = self._split(kwargs)
        if options.pop("stream", False):
            raise UsageError("arun waits for the end: for pieces use run(stream=True) and text_async_iter")
        call = self._prepared(args, arguments)
        state, thread = start_thread(self.name, call, run_options(options), streaming=False)
        await wait_until_over(state, thread)
        return self._manner.result(state)

    @_shows(BATCH_DEFAULTS)
    def run_batch(self, batch_kwargs: Iterable[Any], **kwargs: Any) -> Any:
        """Run it on each item, a dict of arguments or a tuple of positional ones; a list of states in their order.

        Takes the options of `run` (no `stream`) and: `num_threads`, how many programs are under way at most;
        `progress_bar`, a line on stderr; `generator_style`, an iterator that gives the states as they finish;
        `on_error`, "raise" (after all have ended, the first error by order, the others in its notes) or "return"
        (a state whose `error()` is not None in the item's place). `timeout` is for the whole batch.
        """
        unknown = kwargs.keys() - BATCH_DEFAULTS.keys()
        if unknown:
            raise UsageError(f"run_batch has no option {', '.join(sorted(unknown))}; arguments belong in the items")
        values = {**BATCH_DEFAULTS, **kwargs}
        how = batch.manner({name: values.pop(name) for name in BATCH_DEFAULTS.keys() - RUN_DEFAULTS.keys()})
        calls = [self._prepared_item(item) for item in batch_kwargs]
        states = batch.run_batch(self.name, calls, run_options(values), how)
        return self._each(states) if how.as_iterator else [self._manner.result(state) for state in states]

    def bind(self, **kwargs: Any) -> Program:
        """A new program with these arguments given; what is given at the call wins. This one stays as it is."""
        unknown = kwargs.keys() - set(self.arg_names)
        if unknown and not any(p.kind is p.VAR_KEYWORD for p in self._signature.parameters.values()):
            raise UsageError(f"{self.name} has no parameter {', '.join(sorted(unknown))}")
        return Program(self.func, self.num_api_spec_tokens, {**self.bound, **kwargs}, self._manner)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """In a program, on its state: a part of it; the function's own value is returned. Else `run`."""
        if args and isinstance(args[0], ProgramState):
            return self._prepared(args[1:], kwargs)(args[0])
        return self.run(*args, **kwargs)

    def prepared(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> tuple[Call, Options, bool]:
        """What `run` with these would run: the call with its arguments, the options, whether it streams."""
        options, arguments = self._split(kwargs)
        stream = bool(options.pop("stream", False))
        return self._prepared(args, arguments), run_options(options), stream

    def _each(self, states: Any) -> Iterator[Any]:
        with closing(states):  # whoever stops early ends the batch
            for state in states:
                yield self._manner.result(state)

    def _split(self, kwargs: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        """(options, arguments): a name that is both is an argument."""
        options = {name: value for name, value in kwargs.items() if name in RUN_DEFAULTS and name not in self.arg_names}
        return options, {name: value for name, value in kwargs.items() if name not in options}

    def _prepared_item(self, item: Any) -> Call:
        if isinstance(item, Mapping):
            return self._prepared((), item)
        if isinstance(item, (tuple, list)):
            return self._prepared(tuple(item), {})
        raise UsageError(f"an item of a batch is a dict of arguments or a tuple of positional ones, not {item!r}")

    def _prepared(self, args: tuple[Any, ...], arguments: Mapping[str, Any]) -> Call:
        """The function with its arguments, to be called with a state. Raises UsageError if they do not fit."""
        given = {**self.bound, **arguments}
        if self.bound and args:  # positional ones are for what is not bound yet
            free = [name for name in self.arg_names if name not in self.bound]
            given.update(zip(free, args, strict=False))
            args = args[len(free) :]
        try:
            self._signature.bind(None, *args, **given)
        except TypeError as error:
            raise UsageError(f"{self.name}: {error}; it takes {self._signature}, and options of run") from None
        return _Prepared(self.func, args, given)

    def __repr__(self) -> str:
        return f"<program {self.name}{self._signature}>"


@overload
def function(func: Callable[..., Any], num_api_spec_tokens: int | None = None) -> Program: ...
@overload
def function(func: None = None, num_api_spec_tokens: int | None = None) -> Callable[[Callable[..., Any]], Program]: ...
def function(func: Callable[..., Any] | None = None, num_api_spec_tokens: int | None = None) -> Any:
    """Make a program of a function whose first parameter is the state, as a decorator with or without arguments.

    `num_api_spec_tokens` is accepted for SGLang's programs and warns: it is for backends behind an API, which are not
    there yet; an engine in the process makes each call for itself.
    """
    if num_api_spec_tokens is not None:
        warnings.warn(_NO_SPECULATION, UserWarning, stacklevel=2)
    if func is None:
        return partial(Program, num_api_spec_tokens=num_api_spec_tokens)
    return Program(func, num_api_spec_tokens)
