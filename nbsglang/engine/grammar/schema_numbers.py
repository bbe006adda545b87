"""The numbers of a shape as nodes.

Integers have at most 19 digits, and no fraction. Other numbers have at most 19 digits before their point and 20 after
it, or one digit before the point and an exponent. With bounds there are exponents only for small numbers above a low
bound of 0 or less, and with open bounds other than 0 at most 15 digits in all (but 19 for whole numbers), so that a
reader that rounds to 64-bit floats does not land on the bound itself. Minus zero goes where negative numbers go.

Not here: digits within bounds (`schema_digits.py`).
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from math import ceil, floor, lcm

from nbsglang.engine.grammar.rules import Rule, Shared
from nbsglang.engine.grammar.schema_digits import DIGIT, Digits
from nbsglang.engine.grammar.schema_places import NotRegularError
from nbsglang.engine.grammar.schema_shapes import Bound, Number
from nbsglang.engine.grammar.syntax import Alt, Chars, Node, Repeat, Seq, text

_N_WHOLE, _N_PARTS, _N_EXACT = 19, 20, 15
_MOST = 10**_N_WHOLE - 1
_MANY = 1000  # multiples that are written out
_MINUS = Repeat(text("-"), 0, 1)
_FROM_1 = Chars(((0x31, 0x39),))
_FRACTION = Repeat(Seq((text("."), Repeat(DIGIT, 1, _N_PARTS))), 0, 1)


@lru_cache(maxsize=128)
def number(shape: Number) -> Rule:
    """The numbers of a shape. Raises NotRegularError for what this way of writing them cannot say."""
    node = _number(shape)
    return node if isinstance(node, Alt) and not node.parts else Shared(node)


def _number(shape: Number) -> Node:
    if (shape.low and shape.low.value > _MOST) or (shape.high and shape.high.value < -_MOST):
        raise NotRegularError(f"numbers of more than {_N_WHOLE} digits")
    if shape.steps:
        return _multiples(shape)
    if shape.low is None and shape.high is None:
        return _integers() if shape.is_integer else _all()
    low, high = shape.low, shape.high
    ways: list[Node] = []
    if high is None or high.value > 0 or (high.value == 0 and not high.is_open):
        above_zero = low if low is not None and low.value >= 0 else Bound(Fraction(0))
        ways += [*_sizes(above_zero, high, shape).parts, *_small(shape)]
    if low is None or low.value < 0:
        least = Bound(-high.value, high.is_open) if high is not None and high.value <= 0 else Bound(Fraction(0))
        most = None if low is None else Bound(-low.value, low.is_open)
        below_zero = _sizes(least, most, shape)
        ways += [Seq((text("-"), below_zero))] if below_zero.parts else []
    return Alt(tuple(ways))


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


def _sizes(low: Bound, high: Bound | None, shape: Number) -> Alt:
    """The numbers from `low` on, which is not below 0, to `high`; for each number of digits before the point."""
    is_open = any(bound is not None and bound.is_open and bound.value != 0 for bound in (low, high))
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


def _multiples(shape: Number) -> Node:
    """Multiples of whole numbers: all that are in range, or those that their last digits tell."""
    if any(step.denominator != 1 for step in shape.steps):
        raise NotRegularError("'multipleOf' with a number that is not whole")
    step = lcm(*(int(step) for step in shape.steps))
    if shape.low is not None and shape.high is not None:
        least, most = _units(shape.low, shape.high, 1)
        assert most is not None, "there is a bound"
        first, last = -(-least // step), most // step
        if last - first < _MANY:
            values = (step * n for n in range(first, last + 1))
            return Alt(tuple(text(str(value)) for value in values if abs(value) <= _MOST))
    if shape.low is None and shape.high is None:
        for n_digits in range(1, 4):
            if 10**n_digits % step == 0:
                return _by_last_digits(step, n_digits)
    if step == 1:
        return _number(Number(True, shape.low, shape.high))
    raise NotRegularError(f"multiples of {step}, which their last digits do not tell")


def _by_last_digits(step: int, n_digits: int) -> Node:
    values = range(0, 10**n_digits, step)
    ends = Alt(tuple(text(str(value).zfill(n_digits)) for value in values))
    long = Seq((_FROM_1, Repeat(DIGIT, 0, _N_WHOLE - 1 - n_digits), ends))
    return Seq((_MINUS, Alt((*(text(str(value)) for value in values), long))))
