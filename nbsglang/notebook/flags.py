"""The line of `%%sgl`: a name or a signature, and flags; parsed and checked before anything runs.

Whatever is wrong with it is IPython's UsageError, whose message names the nearest flag.

Not here: what the flags do (`runner.py`, `chosen.py`), the flags' own help (`nbsglang/magics.py`).
"""

from __future__ import annotations

import argparse
import keyword
import os
import re
import shlex
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from IPython.core.error import UsageError

from nbsglang import errors
from nbsglang.lang.options import run_options
from nbsglang.notebook.nearest import did_you_mean

VIEWS = ("streams", "tree", "timeline", "numbers", "fsm")
CACHE_MODES = ("keep", "fresh", "off")
# flag -> option of a run
_RUN_FLAGS = {
    "seed": "seed",
    "timeout": "timeout",
    "max_tokens": "max_new_tokens",
    "temperature": "temperature",
    "top_p": "top_p",
}
_NAME_AND_BRACKET = re.compile(r"([^\W\d]\w*)\(")


@dataclass(frozen=True, slots=True)
class CellLine:
    """What the line of a cell says. `parameters` is None for a cell that runs, else the text of its signature."""

    name: str
    parameters: str | None
    out: str
    start: str  # --from
    model: str
    backend: str
    background: bool
    show: tuple[str, ...]
    plain: bool
    cache: str
    budget: int | None
    compare: bool
    dry_run: bool
    trace: str  # a file's name
    quiet: bool
    options: dict[str, Any]  # of the run: seed, timeout, max_new_tokens, temperature, top_p

    @property
    def has_own_engine(self) -> bool:
        """Whether the cell runs on an engine that is made for it alone."""
        return self.cache == "off" or self.budget is not None


def words_of(line: str) -> list[str]:
    """The words of a line, quotes taken off. Raises UsageError for a quote that is not closed."""
    try:
        words = shlex.split(line, posix=os.name == "posix")
    except ValueError as error:
        raise UsageError(f"the line cannot be split into words: {str(error).lower()}") from None
    return [word if os.name == "posix" else word.strip("\"'") for word in words]


def parse_words(parser: argparse.ArgumentParser, words: list[str], whose: str) -> argparse.Namespace:
    """What the parser makes of the words. Raises UsageError, with the nearest flag where one is unknown."""
    parser.allow_abbrev = False  # else a flag that is added later changes what an old line means
    found, unknown = parser.parse_known_args(words)
    for word in unknown:
        if word in ("-h", "--help"):
            raise UsageError(f"{whose} is explained by {'%%sgl?' if whose == '%%sgl' else '%sgl help'}")
        if word.startswith("-"):
            flag = word.partition("=")[0]
            there = " ".join(flags_of(parser))
            hint = did_you_mean(flag, flags_of(parser), f"; its flags are {there}" if there else ": it takes none")
            raise UsageError(f"{whose} has no flag {flag}{hint}")
    if unknown:
        raise UsageError(f"{whose} cannot use {unknown[0]!r}: there is one word too many")
    return found


def flags_of(parser: argparse.ArgumentParser) -> list[str]:
    """The long names of a parser's flags."""
    return [word for action in parser._actions for word in action.option_strings if word.startswith("--")]


def parse_cell_line(parser: argparse.ArgumentParser, line: str, settings: Any) -> CellLine:
    """The line of `%%sgl`. What it leaves open is taken from the settings, the traits of SglMagics."""
    rest, parameters = _split_signature(line)
    given = parse_words(parser, words_of(rest), "%%sgl")
    name = given.target or ""
    _check_name(name, "the name of a cell")
    _check_name(given.out or "", "-o")
    if parameters is not None:
        _check_definition(name, given)
    settled = {flag: getattr(given, flag) for flag in _RUN_FLAGS}
    options = _run_options({flag: getattr(settings, flag) if v is None else v for flag, v in settled.items()})
    if given.model and given.backend:
        raise UsageError("--model loads a model and --backend names what is there: use one of them")
    if given.budget is not None and given.budget < 2:
        raise UsageError(f"--budget is a number of tokens, at least 2, not {given.budget}")
    _check_together(given)
    return CellLine(
        name=name,
        parameters=parameters,
        out=given.out or name,
        start=given.start or "",
        model=given.model or "",
        backend=given.backend or "",
        background=given.bg,
        show=views_of(settings.show if given.show is None else given.show),
        plain=given.plain or settings.plain,
        cache=given.cache,
        budget=given.budget,
        compare=given.compare,
        dry_run=given.dry_run,
        trace=given.trace or "",
        quiet=given.quiet,
        options=options,
    )


def views_of(text: str) -> tuple[str, ...]:
    """The views that `--show` names, separated by commas; "none" alone shows nothing. Raises UsageError."""
    names = tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
    if names == ("none",):
        return ()
    for name in names:
        if name not in VIEWS:
            hint = did_you_mean(name, VIEWS, f"; there are {', '.join(VIEWS)}, or none alone")
            raise UsageError(f"--show has no view {name!r}{hint}")
    if not names:
        raise UsageError(f"--show needs views: {', '.join(VIEWS)}, or none")
    return names


def _run_options(by_flag: dict[str, Any]) -> dict[str, Any]:
    options = {_RUN_FLAGS[flag]: value for flag, value in by_flag.items() if value is not None}
    try:
        run_options(options)
    except errors.UsageError as error:
        raise UsageError(str(error)) from None
    return options


def _check_together(given: argparse.Namespace) -> None:
    """Raise UsageError for flags that say two things at once."""
    others = {"--bg": given.bg, f"--cache {given.cache}": given.cache != "keep", "--compare": given.compare}
    if given.compare and (used := [flag for flag, is_on in others.items() if is_on and flag != "--compare"]):
        raise UsageError(
            f"--compare runs the cell with and without the cache and waits, so {used[0]} has no use beside it"
        )
    others |= {
        "--trace": bool(given.trace),
        "--budget": given.budget is not None,
        "--timeout": given.timeout is not None,
    }
    if given.dry_run and (used := [flag for flag, is_on in others.items() if is_on]):
        raise UsageError(f"--dry-run calls no model, so {used[0]} has no use beside it")


def _check_name(name: str, what: str) -> None:
    if name and (not name.isidentifier() or keyword.iskeyword(name)):
        raise UsageError(f"{what} must be a name of Python, not {name!r}")


def _check_definition(name: str, given: argparse.Namespace) -> None:
    """`%%sgl NAME(...)` runs nothing, so flags of a run have nowhere to go."""
    given_flags = {flag: value for flag, value in vars(given).items() if flag not in ("target", "quiet")}
    used = [flag for flag, value in given_flags.items() if value is not None and value is not False and value != "keep"]
    if used:
        flag = {"start": "from"}.get(used[0], used[0]).replace("_", "-")
        raise UsageError(
            f"%%sgl {name}(...) defines a program and runs nothing, so --{flag} has no use here: "
            f"give options where you run it, as in {name}.run(temperature=0)"
        )


def _split_signature(line: str) -> tuple[str, str | None]:
    """The line with `NAME(...)` made `NAME`, and what stood between the brackets; None without brackets."""
    for start in _word_starts(line):
        found = _NAME_AND_BRACKET.match(line, start)
        if found is not None:
            end = _closing(line, found.end())
            if end < 0:
                raise UsageError(f"the bracket after {found[1]} is not closed: %%sgl {found[1]}(name, other=1)")
            return f"{line[:start]}{found[1]} {line[end + 1 :]}", line[found.end() : end].strip()
    return line, None


def _word_starts(line: str) -> Iterable[int]:
    quote, before = "", " "
    for at, char in enumerate(line):
        if quote:
            quote = "" if char == quote else quote
        elif char in "\"'":
            quote = char
        elif before.isspace() and not char.isspace():
            yield at
        before = char


def _closing(line: str, start: int) -> int:
    """Where the bracket closes that was opened before `start`; -1 if nowhere."""
    depth, quote, at = 1, "", start
    while at < len(line):
        char = line[at]
        if quote:
            at += char == "\\"
            quote = "" if char == quote else quote
        elif char in "\"'":
            quote = char
        else:
            depth += (char in "([{") - (char in ")]}")
            if depth == 0:
                return at
        at += 1
    return -1
