"""Language-model programs in the notebook's own kernel.

Public names are loaded when they are first used, so that importing nbsglang costs next to nothing and
the language alone never imports torch.
"""

from __future__ import annotations

from importlib import import_module

__version__ = "0.1.0"

_WHERE: dict[str, str] = {}


def __getattr__(name: str) -> object:
    module = _WHERE.get(name)
    if module is None:
        raise AttributeError(f"module 'nbsglang' has no attribute {name!r}")
    value = getattr(import_module(module), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*_WHERE, "__version__"])
