"""Language-model programs in the notebook's own kernel.

Public names are loaded when they are first used, so that importing nbsglang costs next to nothing and
the language alone never imports torch.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

# name -> module, or module:attribute where the names differ
_WHERE: dict[str, str] = {
    "CellError": "nbsglang.errors",
    "CellRun": "nbsglang.lang.cell_run",
    "Engine": "nbsglang.engine.engine",
    "EventLog": "nbsglang.events",
    "MockBackend": "nbsglang.backends.mock",
    "NbsglangError": "nbsglang.errors",
    "ProgramState": "nbsglang.lang.state",
    "Regex": "nbsglang.lang.types",
    "Runtime": "nbsglang.engine.engine:Engine",
    "Session": "nbsglang.session",
    "assistant": "nbsglang.lang.api",
    "assistant_begin": "nbsglang.lang.api",
    "assistant_end": "nbsglang.lang.api",
    "flush_cache": "nbsglang.session",
    "fsm": "nbsglang.notebook.automata",
    "function": "nbsglang.lang.program",
    "gen": "nbsglang.lang.api",
    "gen_int": "nbsglang.lang.api",
    "gen_string": "nbsglang.lang.api",
    "get_server_info": "nbsglang.session",
    "global_config": "nbsglang.lang.config",
    "greedy_token_selection": "nbsglang.lang.choices",
    "program": "nbsglang.lang.cell",
    "select": "nbsglang.lang.api",
    "separate_reasoning": "nbsglang.lang.api",
    "set_default_backend": "nbsglang.current",
    "system": "nbsglang.lang.api",
    "system_begin": "nbsglang.lang.api",
    "system_end": "nbsglang.lang.api",
    "token_length_normalized": "nbsglang.lang.choices",
    "unconditional_likelihood_normalized": "nbsglang.lang.choices",
    "user": "nbsglang.lang.api",
    "user_begin": "nbsglang.lang.api",
    "user_end": "nbsglang.lang.api",
}


def __getattr__(name: str) -> object:
    if name not in _WHERE:
        raise AttributeError(f"module 'nbsglang' has no attribute {name!r}")
    module, _, attribute = _WHERE[name].partition(":")
    value = getattr(import_module(module), attribute or name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*_WHERE, "__version__"])


def load_ipython_extension(shell: Any) -> None:
    """What `%load_ext nbsglang` calls: registers `%%sgl` and `%sgl`."""
    from nbsglang import magics

    magics.load(shell)


def unload_ipython_extension(shell: Any) -> None:
    """What `%unload_ext nbsglang` calls: takes the magics away; a model that is loaded stays."""
    from nbsglang import magics

    magics.unload(shell)
