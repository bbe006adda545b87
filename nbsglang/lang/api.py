"""The functions that make values of the language: gen, select, the roles.

Not here: `function` (`program.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from nbsglang.calls import Constraint
from nbsglang.errors import UsageError
from nbsglang.lang.choices import ChoicesSamplingMethod, token_length_normalized
from nbsglang.lang.ops import BeginRole, EndRole, Expr, Gen, Part, Select, parts_of
from nbsglang.lang.options import LogprobWishes, check_regex, sampling_fields
from nbsglang.lang.types import choices_of, schema_constraint, typed, typed_by_name


def gen(
    name: str | None = None,
    max_tokens: int | None = None,
    min_tokens: int | None = None,
    n: int | None = None,
    stop: str | Sequence[str] | None = None,
    stop_token_ids: Sequence[int] | None = None,
    stop_regex: str | Sequence[str] | None = None,
    temperature: float | None = None,
    top_p: float | None = None,
    top_k: int | None = None,
    min_p: float | None = None,
    frequency_penalty: float | None = None,
    presence_penalty: float | None = None,
    ignore_eos: bool | None = None,
    return_logprob: bool | None = None,
    logprob_start_len: int | None = None,
    top_logprobs_num: int | None = None,
    return_text_in_logprobs: bool | None = None,
    dtype: type | str | None = None,
    choices: Sequence[str] | None = None,
    choices_method: ChoicesSamplingMethod | None = None,
    regex: str | None = None,
    json_schema: str | dict[str, Any] | None = None,
    *,
    type: Any = None,  # noqa: A002 (the product's own name for it)
    grammar: str | None = None,
    seed: int | None = None,
    logit_bias: Mapping[int, float] | None = None,
    repetition_penalty: float | None = None,
    heal: bool | None = None,
) -> Expr:
    """Let the model write text, and call it `name`. What is None is taken from the run.

    At most one of `choices`, `regex`, `json_schema`, `grammar`, `dtype` and `type` says what the text must be.
    `type` (int, float, bool, a date, a Literal, an Enum, a tuple of values, a pydantic model ...) also makes the
    variable a value of that type; so does `dtype`, which knows int, float, bool and str (text in quotes).
    With `heal` the first tokens may replace the end of the prompt where they would have merged with it ("http:" goes on
    with "://" as one token); the text begins after the prompt all the same.
    With `n` above 1 the variable is the list of the texts, and the first one goes on in the prompt.
    Choices are scored, not sampled: of the rest only `temperature`, `seed` and `choices_method` count then.
    """
    given = {"choices": choices, "regex": regex, "json_schema": json_schema, "grammar": grammar, "dtype": dtype}
    named = [key for key, value in {**given, "type": type}.items() if value is not None]
    if len(named) > 1:
        raise UsageError(f"gen takes one of {' and '.join(named)}, not all of them")
    _check_name(name)
    values = choices_of(type) if type is not None else None
    if choices is not None or values is not None:
        return _select(name, choices if choices is not None else values or (), temperature, choices_method, seed)
    sampling = sampling_fields(
        max_tokens=max_tokens,
        min_tokens=min_tokens,
        n=n,
        stop=stop,
        stop_token_ids=stop_token_ids,
        stop_regex=stop_regex,
        temperature=temperature,
        top_p=top_p,
        top_k=top_k,
        min_p=min_p,
        frequency_penalty=frequency_penalty,
        presence_penalty=presence_penalty,
        ignore_eos=ignore_eos,
        seed=seed,
        logit_bias=logit_bias,
        repetition_penalty=repetition_penalty,
        heal=heal,
    )
    constraint, read = None, None
    if regex is not None:
        check_regex(regex)
        constraint = Constraint("regex", regex)
    elif json_schema is not None:
        constraint = schema_constraint(json_schema)
    elif grammar is not None:
        constraint = Constraint("grammar", grammar)
    elif dtype is not None:
        constraint, read = typed_by_name(dtype)
    elif type is not None:
        constraint, read = typed(type)
    wishes = LogprobWishes(return_logprob, logprob_start_len, top_logprobs_num, return_text_in_logprobs)
    return Expr((Gen(name, sampling, constraint, wishes, read),))


def gen_int(name: str | None = None, max_tokens: int | None = None, **options: Any) -> Expr:
    """`gen` with `dtype=int`: the variable is an int."""
    return gen(name, max_tokens, dtype=int, **options)


def gen_string(name: str | None = None, max_tokens: int | None = None, **options: Any) -> Expr:
    """`gen` with `dtype=str`: text in double quotes; the variable is what is between them."""
    return gen(name, max_tokens, dtype=str, **options)


def select(
    name: str | Sequence[str] | None = None,
    choices: Sequence[str] | None = None,
    temperature: float = 0.0,
    choices_method: ChoicesSamplingMethod = token_length_normalized,
    *,
    seed: int | None = None,
) -> Expr:
    """Let the model pick one of `choices` by their scores, and call it `name`.

    At temperature 0 the method decides; above, one is drawn by the softmax of the normalized logprobs (of a run or
    select with a `seed` always the same one). A list or tuple as first argument is the choices.
    """
    if isinstance(name, (list, tuple)):
        if choices is not None:
            raise UsageError("select got two lists of choices")
        name, choices = None, name
    _check_name(name)
    if choices is None:
        raise UsageError("select needs choices, as in select('answer', choices=['yes', 'no'])")
    return _select(name if isinstance(name, str) else None, choices, temperature, choices_method, seed)


def separate_reasoning(expr: Expr, model_type: str | None = None) -> Expr:
    """Split `<think>...</think>` off what the gens of `expr` write.

    The variable `x` is then the answer alone, `x_reasoning_content` the reasoning, and only the answer stays in the
    prompt. `model_type` is accepted for SGLang's programs; one form of the tags is known.
    """
    parts = tuple(replace(p, split_reasoning=True) if isinstance(p, Gen) else p for p in parts_of(expr))
    return Expr(parts)


def system(expr: object = None) -> Expr:
    """A whole message of the role system."""
    return role("system", expr)


def user(expr: object = None) -> Expr:
    """A whole message of the role user."""
    return role("user", expr)


def assistant(expr: object = None) -> Expr:
    """A whole message of the role assistant, often `assistant(gen("answer"))`."""
    return role("assistant", expr)


def system_begin() -> Expr:
    """A message of the role system begins."""
    return Expr((BeginRole("system"),))


def system_end() -> Expr:
    """The message of the role system ends."""
    return Expr((EndRole("system"),))


def user_begin() -> Expr:
    """A message of the role user begins."""
    return Expr((BeginRole("user"),))


def user_end() -> Expr:
    """The message of the role user ends."""
    return Expr((EndRole("user"),))


def assistant_begin() -> Expr:
    """A message of the role assistant begins."""
    return Expr((BeginRole("assistant"),))


def assistant_end() -> Expr:
    """The message of the role assistant ends."""
    return Expr((EndRole("assistant"),))


def role(name: str, expr: object = None) -> Expr:
    """A whole message of the role `name`."""
    inner: tuple[Part, ...] = () if expr is None else parts_of(expr)
    return Expr((BeginRole(name), *inner, EndRole(name)))


def _select(
    name: str | None,
    choices: Sequence[str] | Mapping[str, object],
    temperature: float | None,
    method: ChoicesSamplingMethod | None,
    seed: int | None,
) -> Expr:
    if isinstance(choices, str) or not isinstance(choices, (Sequence, Mapping)):
        raise UsageError(f"choices must be a list of strings, not {choices!r}")
    if not choices:
        raise UsageError("choices is empty: there must be something to choose from")
    for choice in choices:
        if not isinstance(choice, str) or not choice:
            raise UsageError(f"each choice must be a string that is not empty, not {choice!r}")
    fields = sampling_fields(temperature=temperature)
    values = choices.values() if isinstance(choices, Mapping) else choices
    wanted = token_length_normalized if method is None else method
    return Expr((Select(name, tuple(choices), tuple(values), fields.get("temperature", 0.0), wanted, seed),))


def _check_name(name: object) -> None:
    if name is not None and (not isinstance(name, str) or not name):
        raise UsageError(f"the name of a variable must be a string, not {name!r}")
