"""The roles of a cell's prompt: a generation outside of any role opens an assistant turn, once a role has been used.

The next role closes that turn, or the end of the cell or branch. The decorator form opens no role by itself.

Not here: the parts themselves (`ops.py`), what a role looks like (a backend's `render`).
"""

from __future__ import annotations

from nbsglang.lang.ops import BeginRole, EndRole, Gen, Part, Select

_ASSISTANT = "assistant"


class Turns:
    """What is open on one state: `role` by the program, or an assistant turn of ours (`implied`).

    `owner` is the cell whose end closes that turn.
    """

    __slots__ = ("implied", "owner", "role", "used")

    def __init__(self, used: bool = False, role: str | None = None, implied: bool = False) -> None:
        self.used = used
        self.role = role
        self.implied = implied
        self.owner: object = None

    def copy(self) -> Turns:
        """For a branch."""
        return Turns(self.used, self.role, self.implied)

    def arranged(self, parts: tuple[Part, ...]) -> tuple[Part, ...]:
        """The parts of one append, with the turns that they open and close. Text beside a generation is in its turn."""
        arranged: list[Part] = []
        outside: list[Part] = []
        for part in parts:
            if isinstance(part, (BeginRole, EndRole)):
                self._put(outside, arranged)
                outside = []
                self._role(part, arranged)
            elif self.role is None:
                outside.append(part)
            else:
                arranged.append(part)
        self._put(outside, arranged)
        return tuple(arranged)

    def closing(self) -> tuple[Part, ...]:
        """What ends the turn that we opened, if one is open."""
        if not self.implied:
            return ()
        self.implied = False
        return (EndRole(_ASSISTANT),)

    def _role(self, part: BeginRole | EndRole, arranged: list[Part]) -> None:
        if isinstance(part, BeginRole):
            arranged += self.closing()
            self.used = True
            self.role = part.role
        else:
            self.role = None
            self.implied = False
        arranged.append(part)

    def _put(self, outside: list[Part], arranged: list[Part]) -> None:
        if self.used and not self.implied and any(isinstance(part, (Gen, Select)) for part in outside):
            arranged.append(BeginRole(_ASSISTANT))
            self.implied = True
        arranged += outside
