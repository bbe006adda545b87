"""What happens, as plain values in one bounded log; every view is a pure function of it.

Writers `emit` from any thread; readers poll `since(seq)`. Bodies hold ints, floats, strings and tuples of
them, so a log can be saved as JSON lines and replayed without torch. Logs hold prompts and outputs: a saved
file is private to its user (mode 0600), and `redact=True` leaves out every text but ids and words of our own.

One file for each family of events: `engine`, `tokens`, `constraints`, `tree`, `programs`; `event` has them all.
`log` keeps them, `lines` writes and reads them, `fields` says what their types mean.

Not here: what views make of events (`viz/fold.py`).
"""

from __future__ import annotations

from nbsglang.events.constraints import (
    Constrained,
    ConstraintGraph,
)
from nbsglang.events.engine import (
    Admitted,
    Control,
    Failed,
    Finished,
    Loading,
    Preempted,
    Queued,
    Ready,
    Step,
)
from nbsglang.events.event import KINDS, Body, Event
from nbsglang.events.fields import TokenIds, Word
from nbsglang.events.log import EventLog
from nbsglang.events.programs import (
    CallBegan,
    CallEnded,
    Scored,
    StreamBegan,
    StreamEnded,
    StreamRole,
    StreamText,
    VariableSet,
)
from nbsglang.events.tokens import (
    Healed,
    Jumped,
    Logprobs,
    Masked,
    Tokens,
    TokenTexts,
    TopLogprobs,
)
from nbsglang.events.tree import (
    NodeAdded,
    NodeEvicted,
    NodeExtended,
    NodeLocked,
    NodeSplit,
    NodeTouched,
    Snapshot,
)

__all__ = [
    "KINDS",
    "Admitted",
    "Body",
    "CallBegan",
    "CallEnded",
    "Constrained",
    "ConstraintGraph",
    "Control",
    "Event",
    "EventLog",
    "Failed",
    "Finished",
    "Healed",
    "Jumped",
    "Loading",
    "Logprobs",
    "Masked",
    "NodeAdded",
    "NodeEvicted",
    "NodeExtended",
    "NodeLocked",
    "NodeSplit",
    "NodeTouched",
    "Preempted",
    "Queued",
    "Ready",
    "Scored",
    "Snapshot",
    "Step",
    "StreamBegan",
    "StreamEnded",
    "StreamRole",
    "StreamText",
    "TokenIds",
    "TokenTexts",
    "Tokens",
    "TopLogprobs",
    "VariableSet",
    "Word",
]
