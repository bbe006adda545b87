"""Cases of the rules R1 to R4, R6 to R8, of names, and of Python's own statements."""

# ruff: noqa: E501 (a table: a case a line)
from __future__ import annotations

import datetime
import enum
import sys
from typing import Any, Literal

import nbsglang as sgl
from tests.lang.cell_table import Case, Gives, Warns


class Color(enum.Enum):
    """For typed generations."""

    RED = "red"
    BLUE = "blue"


class Box:
    """Something with attributes."""

    def __init__(self) -> None:
        self.items: list[Any] = []


def _helper(text: str) -> Any:
    return sgl.user(text) + sgl.gen("from_helper")


def _pair() -> Any:
    return sgl.gen(max_tokens=3), sgl.gen(max_tokens=4)


R1: list[Case] = [
    Gives("a string", '"hello"', "hello"),
    Gives("a first string is text and no docstring", '"""doc"""\nx = 1', "doc", {"x": 1}),
    Gives("strings side by side", '"a" "b"', "ab"),
    Gives("an f-string", 'q = 3\nf"Q: {q}\\n"', "Q: 3\n"),
    Gives("plus", 'q = "why"\n"Q: " + q', "Q: why"),
    Gives("plus from the right", 'q = "why"\nq + "?"', "why?"),
    Gives("percent", 'n = 4\n"%d of %s" % (n, "x")', "4 of x"),
    Gives("times", '"ab" * 2\n3 * "-"', "abab---"),
    Gives("a method of a string", 'xs = ["a", "b"]\n", ".join(xs)\n" x ".strip().upper()', "a, bX"),
    Gives("format", '"{} {b}".format(1, b=2)', "1 2"),
    Gives("a conditional", 'n = 1\n"one" if n == 1 else "many"', "one"),
    Gives("a conditional with nothing", 'n = 2\n"one" if n == 1 else None', ""),
    Gives("a conditional with a generation", 'n = 2\n"one" if n == 1 else gen("a")', "A", {"a": "A"}),
    Gives("a gen", 'gen("a")', "A", {"a": "A"}),
    Gives("a select", 'select("a", ["x", "y"])', "x", {"a": "x"}),
    Gives("a role", 'user("hi")', "[user hi]"),
    Gives("roles in a row", 'system("s") + user("u")', "[system s][user u]"),
    Gives("text plus gen", '"A: " + gen("a") + "."', "A: A."),
    Gives(
        "a value of a helper",
        "ask('q')",
        "[user q][assistant FROM_HELPER]",
        {"from_helper": "FROM_HELPER"},
        {},
        {"ask": _helper},
    ),
    Gives("a helper of the cell", 'def ask(q):\n    return user(f"<{q}>")\nask("x")', "[user <x>]"),
    Gives("a block kept in a name", 'shots = user("q") + assistant("a")\nshots\nshots', "[user q][assistant a]" * 2),
    Gives("in an if", 'if True:\n    "yes"\nelse:\n    "no"', "yes"),
    Gives("in loops", 'for i in range(3):\n    f"{i}"\nwhile i:\n    "w"\n    i -= 1', "012ww"),
    Gives("in try", 'try:\n    "a"\n    1 / 0\nexcept ZeroDivisionError:\n    "b"\nfinally:\n    "c"', "abc"),
    Gives("plain expressions", "xs = []\nxs.append(1)\nlen(xs)\nNone\n...\n1 + 1", "", {"xs": [1]}),
    Gives("empty text", 'x = ""\nf"{x}"\n""', ""),
    Gives("an empty cell", "# nothing", ""),
    Gives("the state", 's += "a"\ns += gen("x")\nb = s["x"] + "!"\nt = s.text()', "aX", {"b": "X!", "t": "aX"}),
    Gives("the state's roles", 's.user("u")\nwith s.var_scope("v"):\n    "in"\nv = s["v"]', "[user u]in", {"v": "in"}),
    Gives("the state's forks", 'f = s.fork(2)\nf += gen("x")\nf.join()\nx = s["x"]', "", {"x": ["X", "X"]}),
    Gives("a dropped call that does something", 'xs = ["a"]\nxs.pop()', ""),
    Warns("a dropped name", 'q = "text"\nq', (2,), "dropped"),
    Warns("a dropped call", "x = 1\ng(x)", (2,), "'made 1'", {"g": lambda x: f"made {x}"}),
    Warns("a gen in a list", 'xs = [\n    gen("a"),\n    gen("b"),\n]', (2, 3), "never appended"),
    Warns("a gen that is counted", "len([gen()])", (1,), "never appended"),
    Warns("a gen in a comparison", 'if gen("x") == "y":\n    "no"', (1,), "gen('x')"),
    Gives("a gen in a list that is appended", 'xs = [gen("a"), gen("b")]\ns += xs', "AB"),
    Gives("reasoning", "t = separate_reasoning(gen())", "so", {"t": "so"}, {"t": "<think>hm</think>so"}),
]

R2: list[Case] = [
    Gives("a name", "a = gen(max_tokens=8)", "A", {"a": "A"}),
    Gives("a name of its own too", 'a = gen("b")', "B", {"a": "B", "b": "B"}),
    Gives("a select", 'a = select(["x", "y"])', "x", {"a": "x"}),
    Gives("two names", "a, b = gen(), gen()", "AB", {"a": "A", "b": "B"}),
    Gives("a list of names", "[a, b] = [gen(), 'x']", "A", {"a": "A", "b": "x"}),
    Gives("nested names", "(a, b), c = (gen(), gen()), 3", "AB", {"a": "A", "b": "B", "c": 3}),
    Gives("names for what a call gives", "a, b = pair()", "AB", {"a": "A", "b": "B"}, {}, {"pair": _pair}),
    Gives("unpacking plain values", "a, *b = [1, 2, 3]\nc, d = 'xy'", "", {"a": 1, "b": [2, 3], "c": "x", "d": "y"}),
    Gives("a walrus", 'if (a := gen()) == "A":\n    "yes"', "Ayes", {"a": "A"}),
    Gives("a walrus in a comprehension", "xs = [(a := gen()) for _ in range(2)]", "AA", {"xs": ["A", "A"], "a": "A"}),
    Gives("a walrus in a while", "n = 0\nwhile (a := gen()) and n < 2:\n    n += 1", "AAA", {"a": "A", "n": 2}),
    Gives("with text around it", 'a = "<" + gen() + ">"', "<A>", {"a": "A"}),
    Gives("in an f-string", 'a = f"<{gen()}>"', "<A>", {"a": "A"}),
    Gives("in a role", "a = assistant(gen())", "[assistant A]", {"a": "A"}),
    Gives("a conditional", "a = gen() if True else None", "A", {"a": "A"}),
    Gives("assigned twice", "a = gen()\na = a + '!'", "A", {"a": "A!"}),
    Gives("several texts", "a = gen(n=2)\nb, c = a", "A", {"a": ["A", "A"], "b": "A", "c": "A"}),
    Gives("plain chains", "a = b = 3\nd = {}\nd['k'] = 4", "", {"a": 3, "b": 3, "d": {"k": 4}}),
    Gives("a block in a dict", 'd = {}\nd["q"] = user("x")\nd["q"]', "[user x]"),
    Gives("a returned gen", 'x = 1\nreturn gen("a")', "A", {"a": "A", "x": 1}),
    Gives("an early end", '"a"\nif True:\n    return\n"b"', "a"),
]

R3: list[Case] = [
    Gives("int", "a: int = gen()\nb = a + 1", "41", {"a": 41, "b": 42}, {"a": "41"}),
    Gives("float", "a: float = gen()", "1.5", {"a": 1.5}, {"a": "1.5"}),
    Gives("bool", "a: bool = gen()", "False", {"a": False}, {"a": "False"}),
    Gives("str", "a: str = gen()", "A", {"a": "A"}),
    Gives("Literal without an import", 'a: Literal["yes", "no"] = gen()', "no", {"a": "no"}, {"a": "no"}),
    Gives("Literal of numbers", "a: Literal[1, 2] = gen()", "2", {"a": 2}, {"a": "2"}),
    Gives("a notebook's Literal", 'a: L["x"] = gen()', "x", {"a": "x"}, {}, {"L": Literal}),
    Gives("date", "a: date = gen()", "2024-02-29", {"a": datetime.date(2024, 2, 29)}, {"a": "2024-02-29"}),
    Gives("Enum", "a: Color = gen()", "blue", {"a": Color.BLUE}, {"a": "blue"}, {"Color": Color}),
    Gives("Regex", 'a: Annotated[str, Regex("[a-z]+")] = gen()', "abc", {"a": "abc"}, {"a": "abc"}),
    Gives("Regex of int", 'a: Annotated[int, Regex("[1-5]")] = gen()', "4", {"a": 4}, {"a": "4"}),
    Gives("a regex of its own", 'a: int = gen(regex=r"[1-5]")', "3", {"a": 3}, {"a": "3"}),
    Gives("choices of its own", 'a: int = gen(choices=["1", "2"])', "2", {"a": 2}, {"a": "2"}),
    Gives("a select", 'a: int = select(["1", "2"])', "1", {"a": 1}),
    Gives("a regex and a Literal", 'a: Literal[1, 2] = gen(regex="[12]")', "2", {"a": 2}, {"a": "2"}),
    Gives("a text annotation", 'a: "int" = gen()', "4", {"a": 4}, {"a": "4"}),
    Gives("an alias", "T = int\na: T = gen()", "4", {"a": 4}, {"a": "4"}),
    Gives("several", "a: int = gen(n=2)", "4", {"a": [4, 4]}, {"a": "4"}),
    Gives("in a role", "a: int = assistant(gen())", "[assistant 4]", {"a": 4}, {"a": "4"}),
    Gives("annotated plain values", "a: int = 3\nb: float = a\nc: Unknown", "", {"a": 3, "b": 3}),
    Gives("an enum of the cell", 'class E(Enum):\n    X = "x"\na: E = gen()\nb = a.name', "x", {"b": "X"}, {"a": "x"}),
    Gives("typed text", 'a: int = gen()\nf"<{a}>"\nuser(f"{a}")', "5<5>[user 5]", {}, {"a": "5"}),
    Gives("an enum's text", 'a: Color = gen()\nf"<{a.value}>"', "red<red>", {}, {"a": "red"}, {"Color": Color}),
]

R4: list[Case] = [
    Gives("a hole", "f\"Name: {gen('name', stop=',')}, \"", "Name: NAME, ", {"name": "NAME"}),
    Gives("two holes", "f\"{gen('a')}-{gen('b')}\"", "A-B", {"a": "A", "b": "B"}),
    Gives("a select in a hole", "f\"{select('a', ['x', 'y'])}\"", "x", {"a": "x"}),
    Gives("in a role", "assistant(f\"Name: {gen('name')}\")", "[assistant Name: NAME]", {"name": "NAME"}),
    Gives("in a function", 'def ask(q):\n    return f"{q}: {gen(q)};"\nask("a")\nask("b")', "a: A;b: B;"),
    Gives("in a lambda", "f = lambda q: f\"{q}{gen('a')}\"\nf(1)", "1A"),
    Gives("formats", 'x = 3.14159\nw = 6\nf"{x:.2f}|{x!r:>8}|{x:>{w}.1f}|{w=}"', "3.14| 3.14159|   3.1|w=6"),
    Gives("formats with a gen", "x = 2.5\nf\"{x:.2f} {gen('a')}\"", "2.50 A"),
    Gives("nested quotes", "d = {'k': 'v'}\nf\"{d['k']} {gen('a')}\"", "v A"),
    Gives("a plain f-string is a string", 'x = "a"\ny = f"{x}b"\nz = type(y).__name__', "", {"y": "ab", "z": "str"}),
    Gives("braces", 'f"{{}} {1}"', "{} 1"),
    Gives(
        "a format of the value",
        'f"{x}"',
        "<boxed>",
        {},
        {},
        {"x": type("X", (), {"__format__": lambda *_: "<boxed>"})()},
    ),
]

R6: list[Case] = [
    Gives("a role", 'with assistant():\n    "a"\n    x = gen()', "[assistant aX]", {"x": "X"}),
    Gives("roles one by one", 'with user():\n    "u"\nwith assistant():\n    gen("a")', "[user u][assistant A]"),
    Gives(
        "closed on errors",
        'try:\n    with user():\n        "u"\n        1 / 0\nexcept ZeroDivisionError:\n    pass',
        "[user u]",
    ),
    Gives("closed on break", 'for i in range(2):\n    with user():\n        f"{i}"\n        break', "[user 0]"),
    Gives("a role in a name", 'role = user\nwith role():\n    "x"', "[user x]"),
    Gives(
        "other managers",
        'with open(p) as f, user():\n    n = len(f.read(2))\n    f"{n}"',
        "[user 2]",
        {"n": 2},
        {},
        {"p": __file__},
    ),
    Gives("a turn opens", 'user("q")\na = gen()\n"."', "[user q][assistant A.]"),
    Gives("a turn closes", 'user("q")\na = gen()\nuser("r")\nb = gen()', "[user q][assistant A][user r][assistant B]"),
    Gives("no role, no turn", 'gen("a")\n"x"', "Ax"),
    Gives("a turn for an f-string", "user('q')\nf\"A: {gen('a')}\"", "[user q][assistant A: A]"),
    Gives("a turn for a select", "user('q')\na = select(['x', 'y'])", "[user q][assistant x]"),
    Gives("no turn inside a role", 'user("q")\nwith user():\n    gen("a")', "[user q][user A]"),
    Gives("no turn inside begin and end", 'user_begin()\n"q"\ngen("a")\nuser_end()', "[user qA]"),
    Gives("the state's gen", 'user("q")\ns += gen("a")', "[user q][assistant A]"),
    Gives("a turn by hand", 'user("q")\nassistant_begin()\ngen("a")\nassistant_end()', "[user q][assistant A]"),
]

R7: list[Case] = [
    Gives("if", 'a = gen()\nif a == "A":\n    "yes"', "Ayes"),
    Gives("while", 'a = gen()\nwhile len(a) < 3:\n    a = a + gen("b") if False else a + "x"', "A", {"a": "Axx"}),
    Gives("try", 'a = gen()\ntry:\n    int(a)\nexcept ValueError:\n    "no"', "Ano"),
    Gives(
        "match",
        'a = gen()\nmatch a:\n    case "B":\n        "b"\n    case "A" | "C" as which:\n        f"{which}"',
        "AA",
    ),
    Gives("match a class", "a = gen()\nmatch a:\n    case str(x):\n        'text'", "Atext"),
    Gives(
        "match a class of the cell",
        "import dataclasses\n@dataclasses.dataclass\nclass P:\n    x: int\np = P(3)\nmatch p:\n    case P(x=3):\n        'three'",
        "three",
    ),
    Gives("match a class that was assigned", "K = dict\nmatch {'a': 1}:\n    case K():\n        'k'", "k"),
    Gives(
        "match values and rest",
        "import types\nN = types.SimpleNamespace(A=1)\nmatch {'k': 1, 'z': 2}:\n    case {'k': N.A, **rest}:\n        f'{rest}'",
        "{'z': 2}",
    ),
    Gives("match a sequence", "match [1, 2, 3]:\n    case [x, *y] if x == 1:\n        f'{y}'", "[2, 3]"),
    Gives("functions", "def f(x):\n    return x + a\na = gen()\nb = f('-')", "A", {"b": "-A"}),
    Gives("closures", "a = gen()\nf = lambda: a.lower()\nb = f()", "A", {"b": "a"}),
    Gives("nonlocal", "n = 0\ndef f():\n    nonlocal n\n    n += 1\nf()\nf()", "", {"n": 2}),
    Gives("nonlocal of a gen", "a = gen()\ndef f():\n    nonlocal a\n    a += '!'\nf()", "A", {"a": "A!"}),
    Gives(
        "generators of the cell",
        "def g():\n    yield a\n    yield from [a]\na = gen()\nb = list(g())",
        "A",
        {"b": ["A", "A"]},
    ),
    Gives(
        "comprehensions",
        "a = gen()\nb = [a + x for x in 'xy' if a]\nc = {a: x for x in 'z'}",
        "A",
        {"b": ["Ax", "Ay"], "c": {"A": "z"}},
    ),
    Gives("a comprehension's own name", "a = gen()\nb = [a for a in 'xy']\nc = a", "A", {"b": ["x", "y"], "c": "A"}),
    Gives(
        "class bodies",
        "a = gen()\nclass C:\n    __x = a\n    y = [a for _ in range(2)]\n    def get(self):\n        return self.__x + a\nb = C().get()\nc = C.y",
        "A",
        {"b": "AA", "c": ["A", "A"]},
    ),
    Gives(
        "a class's own name",
        "a = gen()\nclass C:\n    a = 1\n    b = a\n    def f(self):\n        return a\nc = C.b, C().f()",
        "A",
        {"c": (1, "A")},
    ),
    Gives(
        "super",
        "class B:\n    def f(self):\n        return 1\nclass C(B):\n    def f(self):\n        return super().f() + 1\nn = C().f()",
        "",
        {"n": 2},
    ),
    Gives(
        "class names are clean",
        "class C:\n    class D: pass\nq = C.D.__qualname__\ndef f(): pass\np = f.__qualname__",
        "",
        {"q": "cell.<locals>.C.D", "p": "cell.<locals>.f"},
    ),
    Gives(
        "decorators",
        "def twice(f):\n    return lambda: f() * 2\n@twice\ndef g():\n    return a\na = gen()\nb = g()",
        "A",
        {"b": "AA"},
    ),
    Gives("add to a gen", "a = gen()\na += '!'\nn = 1\nn += 2", "A", {"a": "A!", "n": 3}),
    Gives("del", "a = gen()\ndel a\ntry:\n    a\nexcept NameError:\n    'gone'", "Agone"),
    Gives("global names are live", "def f():\n    return len(xs)\nxs2 = f()", "", {"xs2": 2}, {}, {"xs": [1, 2]}),
    Gives("imports", "import json, os.path as p\nfrom math import floor\nn = floor(json.loads('2.5'))", "", {"n": 2}),
    Gives("with", "import contextlib\nwith contextlib.suppress(KeyError):\n    {}['x']\n'on'", "on"),
    Gives("assert", "a = gen()\nassert a == 'A', a", "A"),
    Gives(
        "async functions",
        "import asyncio\nasync def f():\n    await asyncio.sleep(0)\n    return a\na = gen()\nb = asyncio.run(f())",
        "A",
        {"b": "A"},
    ),
    Gives(
        "lazy: text waits for no value",
        'a = gen()\nf"<{a}>"\nuser(a)\n"-" + a\nb = gen()',
        "A<A>[user A]-A[assistant B]",
        {"b": "B"},
    ),
    Gives("typed names in text", 'a: float = gen()\nf"{a}"', "2.502.5", {}, {"a": "2.50"}),
    Gives(
        "exec and eval of the user's own",
        "b = eval('1 + 1')\nns = {}\nexec('c = 3', ns)\nd = ns['c']",
        "",
        {"b": 2, "d": 3},
    ),
]

NAMES: list[Case] = [
    Gives(
        "the notebook's name is passed in",
        "essay = essay.strip()\nf'{essay}'",
        "x",
        {"essay": "x"},
        {},
        {"essay": " x "},
    ),
    Gives("not assigned is not a result", "if False:\n    x = 1\ny = x", "", {"y": 7}, {}, {"x": 7}),
    Gives("added to", "total += 1", "", {"total": 8}, {}, {"total": 7}),
    Gives("a builtin is passed in", "max = max(1, 2)\nprint = len\nn = print('ab')", "", {"max": 2, "n": 2}),
    Gives(
        "a variable called system",
        "system(system)\nuser(f'{user} {gen}')",
        "[system S][user U 1]",
        {},
        {},
        {"system": "S", "user": "U", "gen": 1},
    ),
    Warns("a function called select", "a = select(['x', 'y'])", (1,), "another name", {"select": print}),
    Gives("a variable called fork", "for k in fork(2):\n    x = k + fork", "", {"x": [5, 6]}, {}, {"fork": 5}),
    Gives("the cell binds gen", "gen = 5\nx = gen + 1", "", {"x": 6}),
    Gives(
        "the cell wraps gen", "import functools\ngen = functools.partial(gen, max_tokens=1)\na = gen()", "A", {"a": "A"}
    ),
    Gives("the cell defines user", "def user(x):\n    return f'<{x}>'\ny = user(1)", "", {"y": "<1>"}),
    Gives(
        "a function's own user",
        "f = lambda user: user.upper()\nx = f('a')\ny = [user for user in 'ab']",
        "",
        {"x": "A", "y": ["a", "b"]},
    ),
    Gives("a parameter called gen", "def f(gen):\n    return gen(1)\nx = f(lambda n: n + 1)", "", {"x": 2}),
    Gives("language names as values", "g = gen\ns += g('a')\nr = {'q': user}\nr['q']('x')", "A[user x]"),
    Gives("the module's own names", "s += sgl.gen('a')\nsgl.user('x')", "A[user x]", {}, {}, {"sgl": sgl}),
    Gives("a notebook's date", "x = date", "", {"x": 3}, {}, {"date": 3}),
    Gives("a method of a language name", "n = gen.__name__", "", {"n": "gen"}),
    Gives("special tokens in data", "user(q)", "[user <|im_end|>]", {}, {}, {"q": "<|im_end|>"}),
]

NEW: list[Case] = [
    Gives("generic functions", "a = gen()\ndef f[T](x: T) -> T:\n    return a\nb = f(1)", "A", {"b": "A"}),
    Gives("type aliases", "type X = list[int]\nv = X.__value__", "", {"v": list[int]}),
    Gives("quotes in f-strings", 'f"{gen("a")} {\'b\'}"', "A b"),
]

CASES: list[Case] = [*R1, *R2, *R3, *R4, *R6, *R7, *NAMES, *(NEW if sys.version_info >= (3, 12) else [])]
