"""The formats of strings that are supported, as regular expressions that match a string in full.

date, time and date-time are those of RFC 3339 (a leap second apart, from year 1 on, and days that there are), duration
that of its appendix, uuid that of RFC 4122, ipv4 and ipv6 those of RFC 2673 and 4291, hostname that of RFC 1123 (three
labels, or ten of at most 24 characters), uri and uri-reference those of RFC 3986. email is the common part of RFC 5321:
no quotes, no comments and no address literal. url, which JSON Schema does not know, is a URI of http with a name of a
host that has two labels or more; byte and base64 are the Base64 of RFC 4648, ip-address and host-name older names.

Formats that JSON Schema does not know say nothing about a text, but for names that look like one in another spelling.
Those that mean something and are not supported are refused.

Not here: formats of numbers (`schema_keywords.py`).
"""

from __future__ import annotations

import re
from difflib import get_close_matches
from functools import cache

_BEYOND = (  # of JSON Schema, its older drafts and OpenAPI
    "idn-email", "idn-hostname", "iri", "iri-reference", "uri-template", "json-pointer", "relative-json-pointer",
    "regex", "color", "phone", "style", "utc-millisec", "uriref",
)  # fmt: skip
_BASE64 = "(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?"
_ALIKE = 0.8  # from here on two names are taken for two spellings of one


@cache
def format_pattern(name: str) -> str:
    """The regular expression of a format. Raises KeyError if it is not supported."""
    return _patterns()[name]


def is_of_format(name: str, value: str) -> bool:
    """Whether a text is of a format as it is read here: all that read it otherwise take more, or any text."""
    return re.fullmatch(format_pattern(name), value) is not None


@cache
def format_names() -> tuple[str, ...]:
    """The formats that are supported, and ask something of a string."""
    return tuple(_patterns())


@cache
def format_objection(name: str) -> str:
    """Why a format of strings cannot be used; nothing if it can, or says nothing."""
    if name in _patterns():
        return ""
    if name in _BEYOND:
        return f"is not supported; these are: {', '.join(format_names())}"
    plain = {known.replace("-", ""): known for known in (*format_names(), *_BEYOND)}
    written = name.lower().replace("-", "").replace("_", "")
    close = [written] if written in plain else get_close_matches(written, plain, 1, _ALIKE)
    return (
        f"is no format of JSON Schema; write {plain[close[0]]!r} if that is meant, else another name" if close else ""
    )


@cache
def _patterns() -> dict[str, str]:
    date, time = _date(), _time()
    return {
        "date": date,
        "time": time,
        "date-time": f"{date}T{time}",
        "duration": _duration(),
        "uuid": "-".join(f"[0-9a-fA-F]{{{n}}}" for n in (8, 4, 4, 4, 12)),
        "email": _email(),
        "hostname": _host(),
        "ipv4": _ipv4(),
        "ipv6": _ipv6(),
        "host-name": _host(),
        "ip-address": _ipv4(),
        "byte": _BASE64,
        "base64": _BASE64,
        "url": _url(),
        "uri": _uri(absolute=True),
        "uri-reference": _uri(absolute=False),
    }


def _date() -> str:
    year = r"(?:[0-9]{3}[1-9]|[0-9]{2}[1-9]0|[0-9][1-9]00|[1-9]000)"
    fourth = "(?:0[48]|[2468][048]|[13579][26])"  # two digits of a multiple of four that is not 00
    leap = f"(?:[0-9]{{2}}{fourth}|{fourth}00)"
    days = "(?:(?:0[1-9]|1[0-2])-(?:0[1-9]|1[0-9]|2[0-8])|(?:0[13-9]|1[0-2])-(?:29|30)|(?:0[13578]|1[02])-31)"
    return f"(?:{year}-{days}|{leap}-02-29)"


def _time() -> str:
    hour, minute = "(?:[01][0-9]|2[0-3])", "[0-5][0-9]"
    return rf"{hour}:{minute}:{minute}(?:\.[0-9]{{1,9}})?(?:Z|[+\-]{hour}:{minute})"


def _duration() -> str:
    n = "[0-9]{1,9}"
    time = f"T(?:{n}H(?:{n}M(?:{n}S)?)?|{n}M(?:{n}S)?|{n}S)"
    date = f"(?:{n}Y(?:{n}M(?:{n}D)?)?|{n}M(?:{n}D)?|{n}D)"
    return f"P(?:{date}(?:{time})?|{time}|{n}W)"


def _host() -> str:
    def labels(longest: int, most: int) -> str:
        label = rf"[a-zA-Z0-9](?:[a-zA-Z0-9\-]{{0,{longest - 2}}}[a-zA-Z0-9])?"
        return rf"{label}(?:\.{label}){{0,{most - 1}}}"

    return f"(?:{labels(63, 3)}|{labels(24, 10)})"  # so that none has more than the 253 characters that go


def _email() -> str:
    atom = r"[a-zA-Z0-9!#$%&'*+/=?^_`{|}~\-]"
    label = "[a-zA-Z0-9](?:[a-zA-Z0-9\\-]*[a-zA-Z0-9])?"
    return rf"{atom}+(?:\.{atom}+)*@{label}(?:\.{label})*"


def _ipv4() -> str:
    byte = "(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
    return rf"{byte}(?:\.{byte}){{3}}"


def _ipv6() -> str:
    group = "[0-9a-fA-F]{1,4}"
    last = f"(?:{group}:{group}|{_ipv4()})"  # the last 32 bits
    whole = f"(?:{group}:){{6}}{last}"
    ways = [whole]
    for n_after in range(7):  # groups after "::", which stands for one group or more
        before = f"(?:{group}(?::{group}){{0,{6 - n_after}}})?"
        after = "" if n_after == 0 else group if n_after == 1 else f"(?:{group}:){{{n_after - 2}}}{last}"
        ways.append(f"{before}::{after}")
    ways.append(f"::(?:{group}:){{5}}{last}")
    return f"(?:{'|'.join(ways)})"


def _url() -> str:
    label, char = "[a-zA-Z0-9]+(?:-[a-zA-Z0-9]+)*", r"(?:[a-zA-Z0-9\-._~!$&'()*+,;=:@]|%[0-9a-fA-F]{2})"
    host = rf"(?:{label}\.){{1,4}}[a-zA-Z]{{2,24}}"
    return rf"https?://{host}(?::[0-9]{{2,5}})?(?:(?:/{char}*)+(?:\?(?:{char}|[/?])*)?(?:#(?:{char}|[/?])*)?)?"


def _uri(absolute: bool) -> str:
    unreserved, sub, escaped = r"a-zA-Z0-9\-._~", "!$&'()*+,;=", "%[0-9a-fA-F]{2}"
    char = f"(?:[{unreserved}{sub}:@]|{escaped})"
    literal = rf"\[(?:{_ipv6()}|v[0-9a-fA-F]+\.[{unreserved}{sub}:]+)\]"
    host = f"(?:{literal}|(?:[{unreserved}{sub}]|{escaped})*)"
    authority = f"(?:(?:[{unreserved}{sub}:]|{escaped})*@)?{host}(?::[0-9]*)?"
    rest = f"(?:/{char}*)*"
    tail = rf"(?:\?(?:{char}|[/?])*)?(?:#(?:{char}|[/?])*)?"
    rooted = f"/(?:{char}+{rest})?"
    with_scheme = rf"[a-zA-Z][a-zA-Z0-9+\-.]*:(?://{authority}{rest}|{rooted}|{char}+{rest}|)"
    if absolute:
        return with_scheme + tail
    no_colon = f"(?:[{unreserved}{sub}@]|{escaped})+"
    return f"(?:{with_scheme}|//{authority}{rest}|{rooted}|{no_colon}{rest}|){tail}"
