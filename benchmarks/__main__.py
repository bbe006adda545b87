"""`python -m benchmarks`, the verb of `make bench`: the same as `python -m benchmarks.cpu`.

Not here: anything else.
"""

from __future__ import annotations

from benchmarks.cpu import main

main()
