"""`%%sgl` and `%sgl`: their registration, their settings, and the explanation of their flags.

Not here: what they do, which is in `nbsglang/notebook/`.
"""

from __future__ import annotations

from copy import deepcopy
from functools import partial
from typing import TYPE_CHECKING, Any

from IPython.core.error import UsageError
from IPython.core.magic import Magics, cell_magic, line_magic, magics_class, no_var_expand
from IPython.core.magic_arguments import argument, magic_arguments
from traitlets import Bool, Float, Integer, TraitError, Unicode, validate

from nbsglang.notebook import answers, completion, handles
from nbsglang.notebook.flags import CACHE_MODES, parse_cell_line, views_of
from nbsglang.notebook.greeting import greet
from nbsglang.notebook.runner import run_cell
from nbsglang.notebook.state import State, state_of
from nbsglang.notebook.verbs import is_verbatim, run_verb, verbs_text

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

_CALLER = 2  # frames above a magic: that of the shell, and the one whose names IPython puts in place of {x} and $x


@magics_class
class SglMagics(Magics):
    """The magics; the traits are the settings of `%config SglMagics`, which flags of a cell override."""

    model = Unicode("", help="The model that a cell loads by itself if there is none.").tag(config=True)
    show = Unicode("streams,tree,numbers", help="What cells show: streams, tree, timeline, numbers, fsm; or none.").tag(
        config=True
    )
    plain = Bool(False, help="Show plain text without colours and pictures.").tag(config=True)
    temperature = Float(None, allow_none=True, min=0, help="Sampling temperature.").tag(config=True)
    top_p = Float(None, allow_none=True, min=0, max=1, help="Share of the tokens that is sampled from.").tag(
        config=True
    )
    max_tokens = Integer(None, allow_none=True, min=0, help="Most tokens that a gen may write.").tag(config=True)
    seed = Integer(None, allow_none=True, help="Makes sampling repeatable.").tag(config=True)
    timeout = Float(None, allow_none=True, min=0, help="Seconds after which a cell is cancelled.").tag(config=True)

    def __init__(self, shell: InteractiveShell, state: State) -> None:
        super().__init__(shell)
        self._state = state

    @validate("show")
    def _known_views(self, proposal: Any) -> str:
        try:
            views_of(proposal["value"])
        except UsageError as error:
            raise TraitError(str(error)) from None
        return str(proposal["value"])

    @no_var_expand
    @magic_arguments("%sgl")
    @argument(
        "target",
        nargs="?",
        metavar="NAME",
        help="Name of the run, and of the variable that gets it. NAME(parameters) defines a program instead of "
        "running the cell: NAME.run(...), NAME.run_batch([...]), or NAME(...) in another cell.",
    )
    @argument("-o", "--out", metavar="NAME", help="The variable that gets the run.")
    @argument("--from", dest="start", metavar="RUN", help="Start where the run in this variable has ended.")
    @argument("-m", "--model", help="The model to run on; it is loaded if it is not yet.")
    @argument("--backend", metavar="NAME", help="A variable with a backend, or a name of `%%sgl load ... --as NAME`.")
    @argument("-b", "--bg", action="store_true", help="Go on at once; the run gets on in the background.")
    @argument("--show", metavar="VIEWS", help="streams, tree, timeline, numbers, fsm, separated by commas; or none.")
    @argument("--plain", action="store_true", help="Plain text without colours and pictures.")
    @argument("--seed", type=int, metavar="N", help="Make sampling repeatable.")
    @argument("--timeout", type=float, metavar="SECONDS", help="Cancel the run after this time.")
    @argument("--max-tokens", type=int, metavar="N", help="Most tokens of a gen that does not say it itself.")
    @argument("-t", "--temperature", type=float, metavar="X", help="Sampling temperature; 0 takes the likeliest token.")
    @argument("--top-p", type=float, metavar="X", help="Sample from the likeliest tokens with this share.")
    @argument(
        "--cache",
        choices=CACHE_MODES,
        default="keep",
        help="keep what is cached (the default), start fresh, or run with the cache off.",
    )
    @argument("--budget", type=int, metavar="TOKENS", help="Run with a KV pool this small, to see eviction.")
    @argument(
        "--compare",
        action="store_true",
        help="Run the cell twice, with the cache and without it, and compare; the result is that of the cached run.",
    )
    @argument(
        "--dry-run",
        action="store_true",
        help="Call no model: show the streams of the cell with made-up answers, and how much its prompts would share.",
    )
    @argument("--trace", metavar="FILE", help="Write a timeline of the run for ui.perfetto.dev; it holds the texts.")
    @argument("-q", "--quiet", action="store_true", help="Show nothing.")
    @cell_magic
    def sgl(self, line: str, cell: str) -> Any:
        """Run the cell as a program of a language model.

        The body is Python. A string alone on a line is appended to the prompt; `a = gen()` lets the model write and
        calls it `a`; `select([...])` lets it choose; `for x in fork([...]):` runs its body side by side on branches;
        `with user():` and `user(...)` are roles. The result is a run: `r["a"]`, `r.text`, `r.branches`, `r.stats`.
        Without a name or -o it is in `_`.
        """
        parsed = parse_cell_line(self.sgl.parser, line, self)
        return run_cell(self._state, parsed, line, cell, model=self.model)

    @no_var_expand
    @line_magic("sgl")  # type: ignore[arg-type]  # its type has no place for a name
    def sgl_line(self, line: str) -> Any:
        """Look after models and caches; `%sgl help` lists the verbs."""
        if not is_verbatim(line):
            line = self._state.shell.var_expand(line, depth=_CALLER)
        return run_verb(self._state, line)


_SECTION = SglMagics.__name__
_sgl_line: Any = SglMagics.sgl_line
_sgl_line.__doc__ = f"Look after models and caches.\n\n{verbs_text()}\n\n%%sgl? explains the cells."


def load(shell: InteractiveShell) -> None:
    """Register everything; what is there already stays as it is."""
    state = state_of(shell)
    if state.undo:
        return
    state.undo.append(partial(_restore_settings, shell, deepcopy(shell.config.get(_SECTION))))
    state.undo.append(partial(_unregister, shell))
    try:
        magics = SglMagics(shell, state)
    except TraitError as error:  # a value in the shell's configuration
        unload(shell)
        raise UsageError(f"the configuration of {_SECTION} is wrong: {error}") from None
    shell.register_magics(magics)
    remember = partial(_remember, state)
    shell.events.register("pre_run_cell", remember)
    state.undo.append(partial(shell.events.unregister, "pre_run_cell", remember))
    state.undo.append(completion.install(state, SglMagics.sgl.parser))
    state.undo.append(handles.install(shell))
    state.undo.append(answers.install(shell))
    greet(shell)


def unload(shell: InteractiveShell) -> None:
    """Take everything away again but what is loaded."""
    state = state_of(shell)
    while state.undo:
        state.undo.pop()()
    state.raw_cell = ""


def _remember(state: State, info: Any) -> None:
    state.raw_cell = info.raw_cell


def _unregister(shell: InteractiveShell) -> None:
    manager = shell.magics_manager
    for kind in ("cell", "line"):
        if isinstance(getattr(manager.magics[kind].get("sgl"), "__self__", None), SglMagics):
            del manager.magics[kind]["sgl"]
    manager.registry.pop(_SECTION, None)
    shell.configurables[:] = [other for other in shell.configurables if not isinstance(other, SglMagics)]


def _restore_settings(shell: InteractiveShell, before: Any) -> None:
    """`%config` writes into the shell's own configuration; put back what came from the user's files."""
    shell.config.pop(_SECTION, None)
    if before is not None:
        shell.config[_SECTION] = before
