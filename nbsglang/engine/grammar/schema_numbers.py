"""The numbers of a shape as nodes.

Integers have at most 19 digits, and no fraction. Other numbers have at most 19 digits before their point and 20 after
it, or one digit before the point and an exponent. With bounds there are exponents only for small numbers above a low
bound of 0 or less, and with open bounds other than 0 at most 15 digits in all (but 19 for whole numbers), so that a
reader that rounds to 64-bit floats does not land on the bound itself; so it is with numbers that must not be whole,
which have no exponent either. Minus zero goes where negative numbers go. What must or must not be a multiple of a whole
number is written as a whole number.

Not here: digits within bounds (`schema_digits.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from math import ceil, floor, lcm

from nbsglang.engine.grammar.rules import Divided, Rule, Shared
from nbsglang.engine.grammar.schema_digits import DIGIT, Digits
from nbsglang.engine.grammar.schema_places import NotRegularError
from nbsglang.engine.grammar.schema_shapes import Bound, Number
from nbsglang.engine.grammar.syntax import Ahead, Alt, Chars, Node, Repeat, Seq, text

_N_WHOLE, _N_PARTS, _N_EXACT = 19, 20, 15
_MOST = 10**_N_WHOLE - 1
_MANY = 1000  # multiples that are written out
_MINUS = Repeat(text("-"), 0, 1)
_FROM_1 = Chars(((0x31, 0x39),))
_FRACTION = Repeat(Seq((text("."), Repeat(DIGIT, 1, _N_PARTS))), 0, 1)


@lru_cache(maxsize=128)
def number(shape: Number) -> Sequence[Rule]:
    """The numbers of a shape, as rules of which any may hold. Raises NotRegularError for what this cannot say."""
    if (shape.low and shape.low.value > _MOST) or (shape.high and shape.high.value < -_MOST):
        raise NotRegularError(f"numbers of more than {_N_WHOLE} digits")
    if not shape.steps and not shape.excluded:
        return _shared(_broken(shape) if shape.is_broken else _number(shape))
    if any(step.denominator != 1 for step in shape.excluded):
        raise NotRegularError("'multipleOf' with a number that is not whole, which must not be")
    if not shape.steps and not shape.is_integer:  # those that are not whole are no multiples
        whole = () if shape.is_broken else number(replace(shape, is_integer=True))
        return *whole, *_shared(_broken(replace(shape, excluded=())))
    return _multiples(shape)


def _shared(node: Node) -> Sequence[Rule]:
    return () if isinstance(node, Alt) and not node.parts else (Shared(node),)


def _number(shape: Number, is_exact: bool = False) -> Node:
    """Numbers without steps; with `is_exact` none is changed by a reader that rounds to 64-bit floats."""
    if shape.low is None and shape.high is None and not is_exact:
        return _integers() if shape.is_integer else _all()
    low, high = shape.low, shape.high
    ways: list[Node] = []
    if high is None or high.value > 0 or (high.value == 0 and not high.is_open):
        above_zero = low if low is not None and low.value >= 0 else Bound(Fraction(0))
        ways += _sizes(above_zero, high, shape, is_exact).parts
        ways += [] if is_exact else _small(shape)
    if low is None or low.value < 0:
        least = Bound(-high.value, high.is_open) if high is not None and high.value <= 0 else Bound(Fraction(0))
        most = None if low is None else Bound(-low.value, low.is_open)
        below_zero = _sizes(least, most, shape, is_exact)
        ways += [Seq((text("-"), below_zero))] if below_zero.parts else []
    return Alt(tuple(ways))


def _broken(shape: Number) -> Node:
    """Numbers that are not whole, however they are rounded."""
    node = _number(replace(shape, is_integer=False), is_exact=True)
    if isinstance(node, Alt) and not node.parts:
        return node
    whole = Repeat(Alt((DIGIT, text("-"))), 0, None)
    return Seq((Ahead(Seq((whole, text("."), Repeat(text("0"), 0, None), _FROM_1))), node))


def _integers() -> Node:
    return Seq((_MINUS, Alt((text("0"), Seq((_FROM_1, Repeat(DIGIT, 0, _N_WHOLE - 1)))))))


def _all() -> Node:
    """Numbers without bounds, all of which are finite as 64-bit floats."""
    plain = Seq((Alt((text("0"), Seq((_FROM_1, Repeat(DIGIT, 0, _N_WHOLE - 1))))), _FRACTION))
    three = Alt((Seq((Chars(((0x31, 0x32),)), DIGIT, DIGIT)), Seq((text("30"), Chars(((0x30, 0x37),))))))
    sign = Repeat(Chars(((0x2B, 0x2B), (0x2D, 0x2D))), 0, 1)
    power = Seq((Chars(((0x45, 0x45), (0x65, 0x65))), sign, Alt((Repeat(DIGIT, 1, 2), three))))
    return Seq((_MINUS, Alt((plain, Seq((_FROM_1, _FRACTION, power))))))


def _small(shape: Number) -> list[Node]:
    """Numbers above 0 and below 0.1 with an exponent, if all of them are in range."""
    low, high = shape.low, shape.high
    if shape.is_integer or (low and low.value > 0) or (high and high.value <= Fraction(1, 10)):
        return []
    power = Alt((Seq((Repeat(text("0"), 0, 1), Chars(((0x32, 0x39),)))), Seq((_FROM_1, DIGIT))))
    return [Seq((_FROM_1, _FRACTION, Chars(((0x45, 0x45), (0x65, 0x65))), text("-"), power))]


def _sizes(low: Bound, high: Bound | None, shape: Number, is_exact: bool) -> Alt:
    """The numbers from `low` on, which is not below 0, to `high`; for each number of digits before the point."""
    is_open = is_exact or any(bound is not None and bound.is_open and bound.value != 0 for bound in (low, high))
    free: list[int] = []
    ways: list[Node] = []
    for n_whole in range(1, _N_WHOLE + 1):
        n_parts = 0 if shape.is_integer else max(_N_EXACT - n_whole, 0) if is_open else _N_PARTS
        unit = 10**n_parts
        first, last = (unit * 10 ** (n_whole - 1) if n_whole > 1 else 0), unit * 10**n_whole - 1
        least, most = _units(low, high, unit)
        if least > last or (most is not None and most < first) or (most is not None and least > most):
            continue
        if least <= first and (most is None or most >= last) and n_whole > 1 and not is_open:
            free.append(n_whole)
        else:
            digits = Digits(n_whole, n_parts)
            below = None if most is None or most >= last else most
            ways.append(digits.within(least if least > first else None, below))
    if free:  # they follow each other
        digit = Repeat(DIGIT, free[0] - 1, free[-1] - 1)
        ways.append(Seq((_FROM_1, digit)) if shape.is_integer else Seq((_FROM_1, digit, _FRACTION)))
    return Alt(tuple(ways))


def _units(low: Bound, high: Bound | None, unit: int) -> tuple[int, int | None]:
    """The bounds in units that there are whole numbers of."""
    least = floor(low.value * unit) + 1 if low.is_open else ceil(low.value * unit)
    if high is None:
        return least, None
    return least, ceil(high.value * unit) - 1 if high.is_open else floor(high.value * unit)


def _multiples(shape: Number) -> Sequence[Rule]:
    """Multiples of whole numbers: all that are in range, or by what is left when they are divided."""
    if any(step.denominator != 1 for step in shape.steps) and not shape.is_integer:
        raise NotRegularError("'multipleOf' with a number that is not whole")
    step = lcm(*(each.numerator for each in shape.steps))  # of whole numbers these are the multiples
    if shape.low is not None and shape.high is not None and not shape.excluded:
        least, most = _units(shape.low, shape.high, 1)
        assert most is not None, "there is a bound"
        first, last = -(-least // step), most // step
        if last - first < _MANY:
            values = [str(step * n) for n in range(first, last + 1) if abs(step * n) <= _MOST]
            return _shared(Alt(tuple(map(text, values))))
    whole = number(Number(True, shape.low, shape.high))
    together = lcm(step, *(each.numerator for each in shape.excluded))
    if not whole or (together == 1 and not shape.excluded):
        return whole
    if together > _MANY:
        raise NotRegularError(f"multiples of {together}")
    rests = [rest for rest in range(0, together, step) if all(rest % each.numerator for each in shape.excluded)]
    if not rests:
        return ()
    (integers,) = whole
    assert isinstance(integers, Shared), "what numbers without steps are"
    return (Divided(integers, together, frozenset(rests)),)
