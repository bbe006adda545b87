"""Schemas with values that fit and values that do not.

Not here: tests. Values are written by `json.dumps` with `ensure_ascii=False`, and must then be accepted or refused; a
text in `RAW` is taken as it is.
"""

from __future__ import annotations

from typing import Any, NamedTuple

INT, STR, NUM = {"type": "integer"}, {"type": "string"}, {"type": "number"}


class Case(NamedTuple):
    """A schema; values that fit it, and that do not."""

    schema: Any
    valid: list[Any]
    invalid: list[Any]


def closed(properties: dict[str, Any], *required: str, **more: Any) -> dict[str, Any]:
    """The schema of an object with these properties only."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
        **more,
    }


_PERSON = closed({"name": STR, "age": {"type": "integer", "minimum": 0, "maximum": 150}}, "name", "age")
_SHAPES = [
    closed({"kind": {"const": "circle"}, "radius": NUM}, "kind", "radius"),
    closed({"kind": {"const": "box"}, "sides": {"type": "array", "items": NUM, "maxItems": 3}}, "kind"),
]
_DRAFT_4 = "http://json-schema.org/draft-04/schema#"
_TWO = [{"pattern": "a"}, {"pattern": "b"}]
_BIG = 9_999_999_999_999_999_999

CASES: dict[str, Case] = {
    "null": Case({"type": "null"}, [None], [False, 0, "", "null"]),
    "boolean": Case({"type": "boolean"}, [True, False], [None, 0, 1, "true"]),
    "integer": Case(INT, [0, 7, -7, 10, 123456789, _BIG, -_BIG], [1.5, 10 * _BIG, "1", True, None, [1]]),
    "number": Case(
        NUM,
        [0, -1, 1.5, 0.1, -2.25, 1e-07, 1.2345678901234567e-05, 1e300, -1.5e22, 0.30000000000000004, 3.0],
        ["1", None, True, []],
    ),
    "types": Case({"type": ["string", "integer", "null"]}, ["", "a", 1, None], [1.5, True, [], {}]),
    "number and integer": Case({"type": ["integer", "number"]}, [1, 1.5], ["1"]),
    "range": Case(
        {"type": "integer", "minimum": -7, "maximum": 120}, [-7, -1, 0, 9, 10, 99, 100, 120], [-8, 121, 1000]
    ),
    "above": Case({"type": "integer", "exclusiveMinimum": 99}, [100, 101, 12345, _BIG], [99, 9, 0, -100]),
    "below": Case({"type": "integer", "maximum": -10}, [-10, -11, -99, -100, -_BIG], [-9, -1, 0, 10, 11]),
    "half": Case({"type": "integer", "minimum": 0.5, "maximum": 2.5}, [1, 2], [0, 3, 1.5]),
    "unit": Case(
        {"type": "number", "minimum": 0, "maximum": 1},
        [0, 1, 0.5, 0.0, 1.0, 0.999999, 1e-07, 0.30000000000000004],
        [-0.1, 1.1, 1.0000001, 2, 10, -1],
    ),
    "open unit": Case(
        {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1},
        [0.5, 0.001, 0.99],
        [0, 1, 0.0, 1.0, 1.01, -0.5],
    ),
    "decimals": Case(
        {"type": "number", "minimum": -12.25, "exclusiveMaximum": 3.125},
        [-12.25, -12.2, -12, -9.9, -0.5, 0, 3, 3.1, 3.12, 3.1249],
        [-12.26, -12.3, -13, -100, 3.125, 3.13, 3.2, 4, 10],
    ),
    "same digits": Case(
        {"type": "number", "minimum": 1.25, "maximum": 1.75}, [1.25, 1.3, 1.5, 1.75], [1, 1.2, 1.8, 2, 11.5]
    ),
    "whole part": Case(
        {"type": "number", "minimum": 100, "maximum": 100.5}, [100, 100.0, 100.25, 100.5], [99.9, 100.6, 101]
    ),
    "tens": Case({"type": "integer", "multipleOf": 10}, [0, 10, -20, 1000], [1, 15, 101, -7]),
    "sevens": Case(
        {"type": "integer", "multipleOf": 7, "minimum": -7, "maximum": 21}, [-7, 0, 7, 14, 21], [-14, 1, 28]
    ),
    "whole multiples": Case({"type": "number", "multipleOf": 4}, [0, 4, 8, 100, -12], [2, 4.5, 102]),
    "int32": Case({"type": "integer", "format": "int32"}, [2147483647, -2147483648, 0], [2147483648, -2147483649]),
    "string": Case(
        STR, ["", "a", 'q"uo\\te', "tab\t\n\r\b\f", "\x00\x1f\x7f", "é 漢 😀\u2028", "a/b"], [1, None, ["a"]]
    ),
    "not of a type": Case({"not": {"type": ["string", "object"]}}, [1, None, [1], True], ["a", {}]),
    "not listed": Case({"enum": ["a", "b", 1, 2.0], "not": {"enum": ["b", 2]}}, ["a", 1], ["b", 2, 2.0, "c"]),
    "not in a range": Case(
        {"type": "number", "not": {"minimum": 1, "exclusiveMaximum": 3}}, [0.9, 3, -5], [1, 2, 2.99]
    ),
    "without a property": Case(
        {"type": "object", "properties": {"a": INT, "b": INT}, "not": {"required": ["a", "b"]}},
        [{}, {"a": 1}, {"b": 1}, {"b": 1, "c": 2}],
        [{"a": 1, "b": 1}, {"a": "x"}, 1],
    ),
    "if and else": Case(
        {"type": "integer", "if": {"minimum": 10}, "then": {"maximum": 20}, "else": {"minimum": 3}},
        [10, 20, 3, 9],
        [21, 25, 2, -1],
    ),
    "dependencies": Case(
        {
            "type": "object",
            "properties": {"a": INT, "b": INT, "c": INT},
            "dependencies": {"a": ["b"], "b": {"properties": {"c": {"maximum": 5}}}},
            "$schema": "http://json-schema.org/draft-07/schema#",
        },
        [{}, {"a": 1, "b": 1}, {"b": 1, "c": 5}, {"c": 9}],
        [{"a": 1}, {"a": 1, "c": 2}, {"b": 1, "c": 6}],
    ),
    "dependent, open": Case(
        {"dependentRequired": {"bar": ["foo"]}, "dependentSchemas": {"x": False}},
        [{}, {"foo": 1}, {"bar": {"bar": {}, "foo": 2}, "foo": 1}, {"bars": 2}, "bar"],
        [{"bar": 2}, {"x": 1}, {"foo": 1, "x": 1}],
    ),
    "dependent": Case(
        {
            "type": "object",
            "properties": {"a": INT, "b": INT},
            "additionalProperties": False,
            "dependentRequired": {"a": ["b"]},
            "dependentSchemas": {"b": {"properties": {"b": {"minimum": 0}}}},
        },
        [{}, {"b": 1}, {"a": 1, "b": 1}],
        [{"a": 1}, {"b": -1}, {"a": 1, "b": -1}],
    ),
    "listed in a tree": Case(
        {
            "$ref": "#/$defs/node",
            "$defs": {
                "node": {
                    "anyOf": [{"type": "null"}, {"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}}}],
                    "enum": [None, {"next": None}, {"next": {"next": None}}, {"next": {"next": 3}}, 3],
                }
            },
        },
        [None, {"next": None}, {"next": {"next": None}}],
        [3, {"next": {"next": 3}}, {}],
    ),
    "listed, not in another list": Case(
        {"allOf": [{"enum": ["a", {"b": 1}]}, {"not": {"enum": [{"b": 1.0}, "c"]}}, {"not": {"pattern": "^b"}}]},
        ["a"],
        [{"b": 1}, "c"],
    ),
    "one of, overlapping": Case(
        {
            "type": "object",
            "oneOf": [
                {"properties": {"a": INT}},
                {"properties": {"b": INT}, "required": ["b"]},
                {"properties": {"c": {"type": "null"}}, "required": ["c"], "additionalProperties": False},
            ],
        },
        [{}, {"a": 1}, {"b": 1, "a": "x"}, {"d": 1}, {"c": 1}],
        [{"b": 1}, {"a": 1, "b": 1}, {"a": "x"}, {"c": None}, {"a": "x", "b": "x"}],
    ),
    "one of whole and other numbers": Case(
        {"oneOf": [INT, {"type": "number", "minimum": 0}]}, [1.5, 0.25, -3], [1, 0, -0.5, 2.0]
    ),
    "one of multiples": Case(
        {"type": "integer", "oneOf": [{"multipleOf": 3}, {"multipleOf": 5}]}, [3, 5, 9, -10, 33], [0, 15, -30, 7, 1]
    ),
    "no multiples": Case(
        {"type": "number", "not": {"multipleOf": 7}, "maximum": 100}, [1, 50, 0.5, -8, -7.25], [7, 0, -14, 49]
    ),
    "dozens": Case(
        {"type": "integer", "multipleOf": 12, "minimum": 0}, [0, 12, 24, 1200, 999999996], [-12, 1, 13, 25, 100]
    ),
    "not found": Case({"type": "string", "not": {"pattern": "^a+$"}}, ["", "b", "ab", "ba", "\n"], ["a", "aaa", "a\n"]),
    "not all of these, in ways": Case(
        {
            "type": "string",
            "not": {
                "allOf": [{"not": {"allOf": [{"pattern": a}, {"pattern": b}]}} for a, b in ("ab", "cd", "ac", "bd")]
            },
            "maxLength": 3,
        },
        ["ab", "xdc", "bd"],
        ["", "a", "ad", "bc", "abcd"],
    ),
    "not this text": Case({"type": "string", "not": {"enum": ["a", "ab"]}}, ["", "abc", "b"], ["a", "ab"]),
    "listed and found": Case(
        {"enum": ["a" * 40 + "b", "a" * 40, "é", 1], "pattern": "^(a+)+$"}, ["a" * 40, 1], ["a" * 40 + "b", "é"]
    ),
    "with some": Case(
        {"type": "array", "items": INT, "contains": {"minimum": 5}}, [[5], [1, 7, 2]], [[], [1], [1, "a", 7]]
    ),
    "with some of few": Case(
        {"type": "array", "contains": {"type": "null"}, "prefixItems": [INT], "maxItems": 3, "minItems": 2},
        [[1, None], [1, "a", None], [1, None, None]],
        [[None, 1], [1], [1, 2, 3], [1, 2, 3, None]],
    ),
    "not all alike": Case({"type": "array", "not": {"items": INT}}, [["a"], [1, "a"], [1, None, 2]], [[], [1], [1, 2]]),
    "all differ": Case(
        {"type": "array", "items": {"enum": ["a", 1, 1.0, None]}, "uniqueItems": True, "minItems": 1, "maxItems": 2},
        [["a"], [1, "a"], [None, 1], ["a", None]],
        [[], ["a", "a"], [1, 1], ["a", 1, None], ["b"]],
    ),
    "not these names": Case(
        {"type": "object", "additionalProperties": INT, "not": {"propertyNames": {"pattern": "^a"}}},
        [{"b": 1}, {"ab": 1, "ca": 2}],
        [{}, {"a": 1}, {"ab": 1, "aa": 1}],
    ),
    "not closed": Case(
        {"type": "object", "properties": {"a": INT}, "not": closed({"a": {}, "b": {}})},
        [{"c": 1}, {"a": 1, "c": 1}],
        [{}, {"a": 1}, {"b": 1}, {"a": 1, "b": 1}],
    ),
    "not closed in two ways": Case(
        {"type": "object", "allOf": [{"not": closed({"a": {}, "b": {}})}, {"not": closed({"a": {}, "c": {}})}]},
        [{"d": 1}, {"b": 1, "c": 2}, {"a": 1, "d": 1}],
        [{}, {"a": 1}, {"b": 1}, {"c": 1}, {"a": 1, "b": 1}, {"a": 1, "c": 1}],
    ),
    "names of vendors": Case({"type": "integer", "$default": {"$source": "argv"}}, [1], ["a"]),
    "old ids": Case(
        {
            "definitions": {
                "a": {"id": "#/definitions/a", "type": "object", "properties": {"b": {"$ref": "#/definitions/b"}}},
                "b": {"type": "null"},
            },
            "$ref": "#/definitions/a",
        },
        [{"b": None}],
        [{"b": 1}],
    ),
    "base64": Case({"type": "string", "format": "byte"}, ["", "YQ==", "YWI=", "YWJj"], ["a", "YQ=", "YQ===", "YWJ"]),
    "url": Case(
        {"type": "string", "format": "url"}, ["https://a.de/b?c#d", "http://www.a-b.org:80"], ["a", "mailto:a@b.c"]
    ),
    "lengths": Case(
        {"type": "string", "minLength": 2, "maxLength": 3}, ["ab", "a\n", "😀é\x01", '"""'], ["", "a", "abcd", "😀"]
    ),
    "pattern": Case({"type": "string", "pattern": "^[a-c]+$"}, ["a", "abcabc"], ["", "d", "ab d", "a\n"]),
    "found": Case({"type": "string", "pattern": "b[0-9]"}, ["b1", "xxb1", 'b1"\n', "\\b2"], ["", "b", "1b", "b\n1"]),
    "escapes": Case(
        {"type": "string", "pattern": "^[\\x00-\\x22\\\\]{1,3}$"},
        ["\n", "\\", '"', '"\\\x01', "\t\x1f "],
        ["", "a", "#", '"a'],
    ),
    "not these": Case({"type": "string", "pattern": r"^[^\"n]*$"}, ["", "a\n", "\\", "u00"], ["n", '"', "in"]),
    "start": Case({"type": "string", "pattern": "^ab|c$"}, ["ab", "abx", "xc", "c"], ["xab", "cx", "a"]),
    "pattern of a length": Case(
        {"type": "string", "pattern": "^[a-z]*$", "minLength": 2, "maxLength": 4}, ["ab", "abcd"], ["a", "abcde", "a1"]
    ),
    "pattern and length": Case(
        {"type": "string", "pattern": "a.*b", "minLength": 3, "maxLength": 5}, ["a b", "xacbx"], ["ab", "aaaabb", "bca"]
    ),
    "lookahead": Case(
        {"type": "string", "pattern": "^(?=.*[0-9])(?!x)[a-z0-9\\n]{2,6}$"},
        ["a1", "1a\n"],
        ["ab", "x1", "a", "abcdef1"],
    ),
    "two patterns": Case(
        {"allOf": [{"type": "string", "pattern": "^a"}, {"pattern": "z$"}, {"maxLength": 5}]},
        ["az", "abz"],
        ["a", "z", "abcdez"],
    ),
    "digits": Case({"type": "string", "pattern": r"^\d\w\s$"}, ["1a ", "9_\t"], ["٣a ", "1é ", "12"]),
    "date": Case(
        {"type": "string", "format": "date"},
        ["2024-02-29", "2000-02-29", "1999-12-31"],
        ["2023-02-29", "1900-02-29", "0000-01-01", "2024-13-01", "2024-04-31", "24-01-01", ""],
    ),
    "date-time": Case(
        {"type": "string", "format": "date-time"},
        ["2024-02-29T23:59:59Z", "2024-01-01T00:00:00.123+05:30"],
        ["2024-02-29", "2024-02-29T24:00:00Z", "2024-02-29 10:00:00Z", "2024-02-29T10:00:00"],
    ),
    "time": Case(
        {"type": "string", "format": "time"}, ["12:00:00Z", "23:59:59.5-08:00"], ["12:00", "25:00:00Z", "12:61:00Z"]
    ),
    "duration": Case(
        {"type": "string", "format": "duration"}, ["P1D", "PT5M", "P1Y2M3DT4H5M6S", "P3W"], ["P", "1D", "PT", "P1S"]
    ),
    "uuid": Case(
        {"type": "string", "format": "uuid"},
        ["123e4567-e89b-12d3-a456-426614174000"],
        ["123e4567e89b12d3a456426614174000", ""],
    ),
    "email": Case(
        {"type": "string", "format": "email"}, ["a@b.c", "a.b+c@example.org"], ["a", "@b", "a@", "a..b@c", "a b@c"]
    ),
    "ipv4": Case({"type": "string", "format": "ipv4"}, ["0.0.0.0", "255.1.20.199"], ["256.0.0.1", "1.2.3", "01.2.3.4"]),
    "ipv6": Case(
        {"type": "string", "format": "ipv6"},
        ["::", "::1", "1::", "1:2:3:4:5:6:7:8", "1:2:3:4:5:6:7::", "::2:3:4:5:6:7:8", "fe80::1:2", "::ffff:1.2.3.4"],
        ["1:2:3:4:5:6:7", "1:2:3:4:5:6:7:8:9", "1::2::3", ":1", "12345::", "1:2:3:4:5:6:7:8::", "1.2.3.4"],
    ),
    "hostname": Case(
        {"type": "string", "format": "hostname"}, ["a", "www.example.org", "a-b.c"], ["-a", "a-", "a..b", "a_b", ""]
    ),
    "uri": Case(
        {"type": "string", "format": "uri"},
        ["http://a.b/c?d=e#f", "mailto:a@b.c", "urn:x:y", "file:///a", "http://[::1]:80/"],
        ["a", "//a/b", "http://a b", "http://a/%zz", "1:x", ""],
    ),
    "enum": Case(
        {"enum": ["a", 1, None, True, [1, "x"], {"k": 1.5}]},
        ["a", 1, None, True, [1, "x"], {"k": 1.5}],
        ["b", 2, False],
    ),
    "enum of a type": Case({"type": "integer", "enum": [1, "1", 2.5, 3, True], "minimum": 2}, [3], [1, "1", 2.5, True]),
    "const": Case({"const": 'é"\n\u0001/'}, ['é"\n\u0001/'], ["é", ""]),
    "object": Case(
        _PERSON,
        [{"name": "x", "age": 3}],
        [{}, {"name": "x"}, {"age": 3, "name": "x"}, {"name": "x", "age": 3, "z": 1}],
    ),
    "optional": Case(
        closed({"a": INT, "b": INT, "c": INT}),
        [
            {},
            {"a": 1},
            {"b": 1},
            {"c": 1},
            {"a": 1, "b": 2},
            {"a": 1, "c": 2},
            {"b": 1, "c": 2},
            {"a": 1, "b": 2, "c": 3},
        ],
        [{"b": 1, "a": 2}, {"a": "x"}, {"d": 1}],
    ),
    "one required": Case(
        closed({"a": INT, "b": INT, "c": INT}, "b"),
        [{"b": 1}, {"a": 1, "b": 2}, {"b": 1, "c": 2}, {"a": 1, "b": 2, "c": 3}],
        [{}, {"a": 1}, {"c": 1}, {"a": 1, "c": 2}],
    ),
    "many optional": Case(
        closed({f"p{n}": {"type": "boolean"} for n in range(100)}),
        [
            {},
            {"p0": True},
            {"p99": True},
            {f"p{n}": True for n in range(100)},
            {f"p{n}": False for n in range(0, 100, 7)},
        ],
        [{"p1": True, "p0": True}, {"p100": True}, {"p9": 1}],
    ),
    "map": Case(
        {"type": "object", "additionalProperties": INT},
        [{}, {"a": 1}, {"a": 1, "b": 2, 'q"\n': 3}, {"": 0}],
        [{"a": "x"}, {"a": None}],
    ),
    "names and others": Case(
        {"type": "object", "properties": {"ab": STR, "abc": INT, "b\n": INT}, "additionalProperties": {"type": "null"}},
        [
            {},
            {"ab": "x", "abc": 1, "abd": None},
            {"a": None, "": None, "abcd": None, "b": None},
            {"b\n": 1, "b\t": None},
        ],
        [{"ab": None}, {"abc": None}, {"abd": 1}, {"b\n": None}],
    ),
    "required of others": Case(
        {"type": "object", "properties": {"a": INT}, "required": ["z"], "additionalProperties": STR},
        [{"z": "x"}, {"a": 1, "z": "", "y": "x"}],
        [{}, {"a": 1}, {"z": 1}, {"a": "x", "z": "x"}],
    ),
    "name patterns": Case(
        {"type": "object", "patternProperties": {"^x-": INT, "s$": STR}, "additionalProperties": False},
        [{}, {"x-a": 1}, {"as": "x"}, {"x-a": 1, "bs": ""}],
        [{"a": 1}, {"x-a": "x"}, {"as": 1}, {"x-s": 1}, {"x-s": ""}],
    ),
    "name patterns and others": Case(
        {
            "type": "object",
            "properties": {"x-1": STR},
            "patternProperties": {"^x": {"type": "string", "maxLength": 2}},
            "additionalProperties": INT,
        },
        [{"x-1": "ab"}, {"a": 1}],
        [{"x-1": "abc"}, {"x-1": 1}, {"a": "x"}],
    ),
    "names of names": Case(
        {"type": "object", "propertyNames": {"enum": ["a", "b"]}, "additionalProperties": INT},
        [{}, {"a": 1}, {"b": 1, "a": 2}],
        [{"c": 1}],
    ),
    "not empty": Case(closed({"a": INT, "b": INT}, minProperties=1), [{"a": 1}, {"b": 1}, {"a": 1, "b": 1}], [{}]),
    "exactly one": Case(
        closed({"a": INT, "b": INT}, minProperties=1, maxProperties=1), [{"a": 1}, {"b": 1}], [{}, {"a": 1, "b": 1}]
    ),
    "few of a map": Case(
        {"type": "object", "additionalProperties": INT, "maxProperties": 2},
        [{}, {"a": 1}, {"a": 1, "b": 1}],
        [{"a": 1, "b": 1, "c": 1}],
    ),
    "array": Case({"type": "array", "items": INT}, [[], [1], [1, 2, 3]], [["a"], [1, "a"], 1, {}]),
    "counted": Case(
        {"type": "array", "items": STR, "minItems": 1, "maxItems": 3}, [["a"], ["", "b", "c"]], [[], ["a"] * 4, [1]]
    ),
    "tuple": Case(
        {"type": "array", "prefixItems": [INT, STR], "items": False, "minItems": 1},
        [[1], [1, "a"]],
        [[], ["a"], [1, 2], [1, "a", 1]],
    ),
    "open tuple": Case(
        {"type": "array", "prefixItems": [INT, STR], "items": {"type": "null"}, "maxItems": 4},
        [[], [1], [1, "a"], [1, "a", None], [1, "a", None, None]],
        [[1, "a", 1], [1, "a", None, None, None], [None]],
    ),
    "old tuple": Case(
        {"$schema": "http://json-schema.org/draft-07/schema#", "type": "array", "items": [INT], "additionalItems": STR},
        [[], [1], [1, "a", "b"]],
        [["a"], [1, 2]],
    ),
    "nested": Case(
        closed({"people": {"type": "array", "items": _PERSON, "minItems": 1}, "by": closed({"x": NUM})}, "people"),
        [
            {"people": [{"name": "a", "age": 1}]},
            {"people": [{"name": "a", "age": 1}] * 2, "by": {"x": 1.5}},
        ],
        [{"people": []}, {"people": [{"name": "a"}]}, {"people": [{"name": "a", "age": 1}], "by": {"y": 1}}],
    ),
    "any of": Case(
        {"anyOf": [INT, {"type": "string", "maxLength": 1}, {"type": "array", "items": INT}]},
        [1, "a", [1]],
        ["ab", 1.5],
    ),
    "any of with more": Case(
        {"type": "string", "anyOf": [{"maxLength": 1}, {"minLength": 3}], "maxLength": 4},
        ["", "a", "abc", "abcd"],
        ["ab", "abcde", 1],
    ),
    "one of": Case(
        {"oneOf": _SHAPES},
        [{"kind": "circle", "radius": 1}, {"kind": "box", "sides": [1, 2]}],
        [{"kind": "box", "radius": 1}],
    ),
    "one of values": Case(
        {"oneOf": [{"enum": [1, 2, "a"]}, {"enum": [2, "a", 3]}, {"type": "null"}]}, [1, 3, None], [2, "a"]
    ),
    "one of numbers": Case(
        {"oneOf": [{"type": "integer", "maximum": 3}, {"type": "integer", "minimum": 5}]}, [3, 5, -1], [4]
    ),
    "all of": Case(
        {
            "allOf": [
                {"type": "object", "properties": {"a": INT}, "required": ["a"]},
                {"properties": {"a": {"maximum": 5}, "b": STR}, "required": ["b"], "additionalProperties": False},
            ]
        },
        [{"a": 5, "b": ""}, {"a": -1, "b": "x"}],
        [{"a": 6, "b": ""}, {"a": 1}, {"b": ""}, {"a": 1, "b": "", "c": 1}],
    ),
    "references": Case(
        {
            "$ref": "#/$defs/pair",
            "$defs": {
                "pair": {"type": "array", "prefixItems": [{"$ref": "#/$defs/a~1b"}] * 2, "items": False, "minItems": 2},
                "a/b": {"type": "integer", "maximum": 9},
            },
        },
        [[1, 2]],
        [[1], [1, 10], [1, 2, 3]],
    ),
    "nothing in between": Case({"type": "array", "items": False}, [[]], [[1], [None]]),
    "annotations": Case(
        {"title": "t", "description": "d", "default": 1, "examples": [1], "x-order": 3, "type": "null"}, [None], [1]
    ),
    "true and false": Case(closed({"a": False, "b": INT}), [{}, {"b": 1}], [{"a": 1}, {"a": None, "b": 1}]),
    "old bounds": Case(
        {
            "$schema": "http://json-schema.org/draft-04/schema#",
            "type": "integer",
            "minimum": 0,
            "exclusiveMinimum": True,
            "maximum": 5,
        },
        [1, 5],
        [0, 6],
    ),
    "old bounds that must not hold": Case(
        {"$schema": _DRAFT_4, "type": "integer", "not": {"minimum": 0, "exclusiveMinimum": True}}, [0, -1], [1, 6]
    ),
    "the same patterns in another order": Case(
        {"type": "string", "anyOf": [{"allOf": _TWO}, {"allOf": _TWO[::-1]}]}, ["ab", "bxa"], ["a", "b", ""]
    ),
    "not these patterns, in any order": Case(
        {"type": "string", "not": {"anyOf": [{"allOf": _TWO}, {"allOf": _TWO[::-1]}]}}, ["a", "b", ""], ["ab", "bxa"]
    ),
    "not these or those": Case(
        {"anyOf": [{"not": {"enum": ["x", "y"]}}, {"not": {"enum": ["y", "x"]}}]}, ["z", 1], ["x"]
    ),
    "no multiples of one": Case({"type": "number", "not": {"multipleOf": 1}}, [5.5, -0.25], [5, 0, -7]),
    "not what is whole": Case({"not": {"type": "integer", "multipleOf": 1.0}}, [5.5, "a"], [0, 7]),
    "not an open object": Case(
        {"not": {"type": "object", "required": ["a"], "additionalProperties": {}}},
        [{"b": 1}, 1],
        [{"a": 1}, {"a": 1, "b": 2}],
    ),
    "not an open list": Case(
        {"type": "array", "not": {"prefixItems": [{"const": 1}], "items": True}}, [[2], [2, 1]], [[], [1], [1, 2]]
    ),
    "described beside a reference": Case(
        {
            "$schema": "http://json-schema.org/draft-07/schema#",
            "definitions": {"a": {"type": "string"}},
            "not": {"$ref": "#/definitions/a", "description": "a text"},
        },
        [1, None],
        ["abc"],
    ),
}

RAW: dict[str, tuple[Any, list[str], list[str]]] = {  # a schema, texts that are accepted, texts that are not
    "white space": (
        closed({"a": {"type": "array", "items": INT}, "b": INT}),
        ['{"a": [1, 2], "b": 3}'],
        ['{"a":[1, 2]}', '{"a": [1,2]}', ' {"b": 3}', '{ "b": 3}', '{"b": 3} ', '{"a": [1, 2],"b": 3}', '{"b" : 3}'],
    ),
    "strings": (
        {"type": "string"},
        [r'"\u0041"', r'"\ud83d\uDE00"', r'"\/\b\f\n\r\t\\\""', r'"\uD7ff\ue000"', '"😀"'],
        [r'"\ud83d"', r'"\ude00"', r'"\ud83d\u0041"', r'"\x41"', r'"\u12"', '"\n"', '"a', 'a"', r'"\a"', "'a'"],
    ),
    "lengths": (
        {"type": "string", "maxLength": 1},
        [r'"\ud83d\ude00"', r'"\n"', r'"\u0041"'],
        [r'"\n\n"', r'"a\u0041"'],
    ),
    "one spelling": (
        {"type": "string", "pattern": "^[\\x00-z]$"},
        [r'"\u0001"', r'"\n"', r'"\""', '"/"', '"a"', r'"\\"', r'"\u001f"'],
        [r'"\u000a"', r'"\u0061"', r'"\/"', '"{"', r'"\u001F"', r'"\u007f"'],
    ),
    "numbers": (
        {"type": "number"},
        ["-0", "1.0", "1e5", "1E+05", "1.5e-300", "1e307"],
        ["01", "+1", ".5", "1.", "1e", "1e308", "12e5", "NaN", "Infinity", "-", "0x1", "1" * 20],
    ),
    "zeros": (
        {"type": "number", "minimum": 1, "maximum": 1.5},
        ["1", "1.0", "1.00", "1.5", "1.50", "1.500", "1.4999"],
        ["1.51", "1.501", "0.999", "01", "-1", "1.", "2"],
    ),
    "names": (
        {"type": "object", "properties": {"a": {"type": "integer"}}, "additionalProperties": {"type": "string"}},
        ['{"a": 1, "b": "x"}', '{"b": "x"}'],
        [r'{"\u0061": "x"}', '{"a": 1, "a": "x"}', '{"a": 1,}', "{,}", '{, "a": 1}'],
    ),
    "fixed": ({"enum": [1.5, "é", [1, {"a": None}]]}, ["1.5", '"é"', '[1, {"a": null}]'], ["1.50", r'"\u00e9"', "[1]"]),
}
