"""The regular expressions of typed generations, under the module name that SGLang's programs import.

Not here: the operations of a program (`ops.py`).
"""

from nbsglang.lang.types import REGEX_BOOL, REGEX_DATE, REGEX_FLOAT, REGEX_INT, REGEX_STR

__all__ = ["REGEX_BOOL", "REGEX_DATE", "REGEX_FLOAT", "REGEX_INT", "REGEX_STR"]
