"""What the verbs of `%sgl` take, for their parsers, help and completion.

Not here: the verbs (`verbs.py`).
"""

from __future__ import annotations

from IPython.core.magic_arguments import MagicArgumentParser

from nbsglang.notebook import exports
from nbsglang.viz.whatif import POLICIES as EVICTION

POLICIES = ("prefix", "fcfs", "random", "dfs_weight")


def load_arguments(parser: MagicArgumentParser) -> None:
    """What `load` takes."""
    parser.add_argument("model", metavar="MODEL")
    parser.add_argument("--as", dest="name", metavar="NAME")
    parser.add_argument("--tokenizer", metavar="VARIABLE")
    parser.add_argument("--device")
    parser.add_argument("--dtype")
    parser.add_argument("--kv-tokens", type=int, metavar="N")
    parser.add_argument("--kv-memory", type=float, metavar="SHARE")
    parser.add_argument("--max-batch", type=int, metavar="N")
    parser.add_argument("--chunk-tokens", type=int, metavar="N")
    parser.add_argument("--policy", choices=POLICIES)
    parser.add_argument("--seed", type=int, metavar="N")
    parser.add_argument("--allow-pickle", action="store_true")


def pattern(parser: MagicArgumentParser) -> None:
    """What `fsm` takes."""
    parser.add_argument("pattern", metavar="PATTERN_OR_NAME")


def name_argument(parser: MagicArgumentParser) -> None:
    """A backend's name, or none."""
    parser.add_argument("name", nargs="?", metavar="NAME")


def export_arguments(parser: MagicArgumentParser) -> None:
    """What `export` takes."""
    parser.add_argument("file", metavar="FILE", help=", ".join(f"{end}: {k.what}" for end, k in exports.KINDS.items()))
    parser.add_argument("run", nargs="?", metavar="RUN", help="The variable of a run that is meant alone.")
    parser.add_argument("--redact", action="store_true", help="Leave the texts out of a log.")


def file_argument(parser: MagicArgumentParser) -> None:
    """What `replay` takes."""
    parser.add_argument("file", metavar="FILE")


def whatif_arguments(parser: MagicArgumentParser) -> None:
    """What `whatif` takes."""
    parser.add_argument("file", nargs="?", metavar="FILE", help="A log that was saved; else what has run until now.")
    parser.add_argument("--kv-tokens", type=int, nargs="+", metavar="N", help="Sizes of the pool.")
    parser.add_argument("--policy", choices=(*EVICTION, "all"), default="all", help="What is evicted first.")
