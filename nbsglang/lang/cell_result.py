"""What a cell's run or one of its branches has made: variables, text, messages, branches.

Not here: the run itself (`cell_run.py`).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from typing import Any

from nbsglang.calls import Generated, Token
from nbsglang.errors import NbsglangError, NoSuchVariable
from nbsglang.lang.cell_fork import Loop
from nbsglang.lang.held import force
from nbsglang.lang.slots import is_unnamed
from nbsglang.lang.state import ProgramState


class Branch:
    """The results of one state. Reading waits for what is not there yet, and raises its error."""

    def __init__(self, state: ProgramState) -> None:
        self.state = state

    def __getitem__(self, name: str) -> Any:
        """What the cell assigned to this name, or what its generation of this name gave."""
        variables = self._variables
        if name in variables:
            return force(variables[name])
        if name in self.state:
            return self.state.get_var(name)
        for loop in reversed(self._loops):  # named in branches only, as in f"{gen('x')}"
            if any(name in state for state in loop.states):
                return [state.get_var(name) if name in state else None for state in loop.states]
        self.state._raise_error()
        raise NoSuchVariable(f"there is no variable {name!r}; there are: {', '.join(map(repr, self.keys())) or 'none'}")

    def __contains__(self, name: object) -> bool:
        return name in self.keys()

    def __iter__(self) -> Iterator[str]:
        return iter(self.keys())

    def keys(self) -> list[str]:
        """The names of all variables."""
        names = dict.fromkeys(self._variables)
        names.update(dict.fromkeys(name for name in self.state._slots if not is_unnamed(name)))
        for loop in self._loops:
            for state in loop.states:
                names.update(dict.fromkeys(name for name in state._slots if not is_unnamed(name)))
        return list(names)

    @property
    def variables(self) -> dict[str, Any]:
        """What the cell's own lines assigned; what failed is left out."""
        found = {}
        for name, value in self._variables.items():
            try:
                found[name] = force(value)
            except NbsglangError:
                continue
        return found

    @property
    def text(self) -> str:
        """The whole prompt as the model sees it."""
        return self.state.text()

    def messages(self) -> list[dict[str, str]]:
        """The finished messages, as dicts of role and content."""
        return self.state.messages()

    @property
    def tokens(self) -> tuple[Token, ...]:
        """The ids of all tokens in the prompt that the model wrote, in order; empty if the backend gives no ids.

        Each says whether it was `jumped`, and how much probability its constraint had `removed`.
        """
        self.state.sync()
        ids = (i for part in self.state._stream.prompt if isinstance(part, Generated) for i in part.ids)
        return tuple(i if isinstance(i, Token) else Token(i) for i in ids)

    @property
    def branches(self) -> Branches:
        """The branches of its loops, by key."""
        return Branches(self._loops)

    @property
    def _variables(self) -> dict[str, Any]:
        return self.state._cell.variables if self.state._cell is not None else {}

    @property
    def _loops(self) -> list[Loop]:
        return self.state._cell.loops if self.state._cell is not None else []

    def __repr__(self) -> str:
        return f"<branch with {', '.join(self.keys()) or 'no variables'}>"


class Branches(Mapping[Any, Branch]):
    """Branches by key, those of a later loop before those of an earlier one with the same key.

    Where the keys of a loop are not all different, or cannot be keys of a dict, they are numbered instead.
    """

    def __init__(self, loops: list[Loop]) -> None:
        self._found: dict[Any, Branch] = {}
        for loop in loops:
            hashable = all(isinstance(key, Hashable) for key in loop.keys)
            unique = hashable and _all_different(loop.keys)
            for number, (key, state) in enumerate(zip(loop.keys, loop.states, strict=True)):
                self._found[key if unique else number] = Branch(state)

    def __getitem__(self, key: Any) -> Branch:
        return self._found[key]

    def __iter__(self) -> Iterator[Any]:
        return iter(self._found)

    def __len__(self) -> int:
        return len(self._found)

    def __repr__(self) -> str:
        return f"<branches {', '.join(map(repr, self._found)) or 'none'}>"


def _all_different(keys: list[Any]) -> bool:
    try:
        return len(set(keys)) == len(keys)
    except TypeError:  # a tuple of lists is Hashable by its looks
        return False
