"""Common uses of a string: each must give with a generation what it gives with the string itself."""

# ruff: noqa: E501 (a table: a case a line)
from __future__ import annotations

from typing import Any

from tests.lang.cell_table import Case, Gives

VALUE = '{"k": [1, 2]}'
IMPORTS = (
    "import base64, bisect, collections, copy, csv, datetime, fnmatch, functools, hashlib, html, io, itertools, json, "
    "operator, os, pathlib, pickle, re, shlex, string, struct, textwrap, unicodedata, urllib.parse, zlib"
)

USES = [
    "json.loads(a)", "json.dumps(a)", "json.dumps({a: [a]})", "re.search(r'\\d', a).group()", "re.sub('k', a, 'k')",
    "re.compile(a.replace('{', '').replace('}', '').replace('[', '').replace(']', '')).pattern", "''.join([a, a])",
    "a.join('xy')", "'k' in a", "a in {a}", "{a: 1}[a]", "{'%s': 1}.get(a)", "sorted([a, 'z', 'a'])", "max(a, 'b')",
    "a == %r", "a != 'x'", "a < 'z'", "hash(a) == hash(%r)", "len(a)", "a[0] + a[-1]", "a[1:4]", "list(a)[:2]",
    "[c for c in a if c.isdigit()]", "a.encode()", "bytes(a, 'utf8')", "a + 'x'", "'x' + a", "a * 2", "'%%s!' %% a",
    "'{}'.format(a)", "f'{a!r:>20}'", "str(a)", "repr(a)", "pickle.loads(pickle.dumps(a))", "copy.deepcopy([a])",
    "isinstance(a, str)", "type(a) is str", "a is a", "bool(a)", "a and 1", "not a", "a or 'x'", "int(a[7])",
    "float(a[7])", "ord(a[0])", "eval(a)", "hashlib.sha256(a.encode()).hexdigest()", "base64.b64encode(a.encode())",
    "collections.Counter(a).most_common(1)", "html.escape(a)", "urllib.parse.quote(a)", "io.StringIO(a).read()",
    "next(csv.reader([a]))", "textwrap.wrap(a, 4)", "string.Template('$x').substitute(x=a)", "fnmatch.fnmatch(a, '*k*')",
    "pathlib.PurePosixPath('p') / a", "os.path.join('p', a)", "shlex.quote(a)", "a.partition(':')", "a.split(',')",
    "a.startswith('{')", "a.translate({ord('k'): 'q'})", "functools.reduce(operator.add, a)", "dict(zip(a, a))['k']",
    "unicodedata.normalize('NFC', a)", "zlib.crc32(a.encode())", "struct.pack('3s', a[:3].encode())",
    "bisect.bisect([a], a)", "list(itertools.islice(a, 2))", "(lambda x: x)(a)", "[*a][0]", "{**{a: 1}}",
    "print(a)", "exec(f'b = {a}')", "getattr(a, 'upper')()", "'x'.replace('x', a)", "a.count('k')", "set(a) & set('k')",
    "tuple(map(str.upper, a))[:2]", "any(c == 'k' for c in a)", "datetime.datetime(2024, 1, 1).strftime(a)",
    "isinstance(a, collections.abc.Sequence)" if hasattr(__import__("collections"), "abc") else "1", "a.__class__",
]  # fmt: skip


def _expected(use: str) -> Any:
    space: dict[str, Any] = {"a": VALUE}
    exec(IMPORTS, space)
    return eval(use, space)


def _use(use: str) -> Case:
    use = use % VALUE if use.count("%r") else use.replace("%%", "%")
    return Gives(f"use {use}", f"{IMPORTS}\na = gen()\nb = {use}", VALUE, {"b": _expected(use)}, {"a": VALUE})


CASES: list[Case] = [_use(use) for use in USES]
