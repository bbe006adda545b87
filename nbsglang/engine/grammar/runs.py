"""Positions in one line, which all move in a few operations on integers.

Texts, choices of texts and single classes that repeat are such lines, and most of most patterns is made of them. See
`blocks.py` for what positions are; a `Run` is one of its blocks, one without gates.

Not here: what needs more than one line (`blocks.py`), which runs are made (`build.py`).
"""

from __future__ import annotations


class Run:
    """Positions of which each is followed by the next (`go`), by itself (`stay`) or by none, and that end in `out`.

    `starts` are those that a text can begin at; `nullable` is whether there is the empty text.
    """

    def __init__(self, size: int, starts: int, go: int, stay: int, out: int, nullable: bool = False) -> None:
        self.size = size
        self.gates = 0
        self.starts = starts
        self.go = go
        self.stay = stay
        self.out = out
        self.nullable = nullable

    @property
    def alone(self) -> int:
        """See `Block.alone`."""
        return self.go & ~(self.stay | self.out)

    def first(self, gates: int) -> int:
        """See `Block.first`."""
        return self.starts

    def empty(self, gates: int) -> bool:
        """See `Block.empty`."""
        return self.nullable

    def advance(self, bits: int, gates: int) -> tuple[int, bool]:
        """See `Block.advance`."""
        return (bits & self.go) << 1 | bits & self.stay, bool(bits & self.out)

    def joins(self, other: Run) -> bool:
        """Whether this and the other one after it are one run."""
        return self.out == 1 << (self.size - 1) and not self.nullable and other.starts == 1

    def then(self, other: Run) -> Run:
        """This and the other one after it, which it `joins`."""
        size = self.size
        out = other.out << size | (self.out if other.nullable else 0)
        go = self.go | self.out | other.go << size
        return Run(size + other.size, self.starts, go, self.stay | other.stay << size, out)

    def beside(self, other: Run) -> Run:
        """Either this or the other."""
        n = self.size
        return Run(
            n + other.size,
            self.starts | other.starts << n,
            self.go | other.go << n,
            self.stay | other.stay << n,
            self.out | other.out << n,
            self.nullable or other.nullable,
        )


def chain(least: int, most: int | None) -> Run:
    """One character, so many times."""
    size = max(least, 1) if most is None else most
    end = (1 << size) - 1
    out = end >> max(least - 1, 0) << max(least - 1, 0)
    return Run(size, 1, end >> 1, 1 << (size - 1) if most is None else 0, out, least == 0)


def line(size: int) -> Run:
    """So many characters, one after the other."""
    return Run(size, 1, (1 << size - 1) - 1, 0, 1 << size - 1)
