"""A view as plain values for JSON: from it the front end goes on as if it had folded all events itself.

Rows are lists of fields in the order of the dataclasses in `state.py`; `web/src/fold/dump.js` reads them, and tests
hold the two to the same values.

Not here: events as JSON (`nbsglang.events`), how dumps travel (`wire.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from nbsglang.viz.fold import View
from nbsglang.viz.marks import Marks
from nbsglang.viz.state import CallView, Node, RequestView, StreamView


def dump(view: View, watched: Mapping[str, Marks] | None = None) -> dict[str, Any]:
    """The whole state of the view; `watched` are marks of longer spans, each under the source of its run."""
    requests = _Numbered(view)
    streams = [_stream(view, stream, requests) for stream in view.streams.values()]
    return {
        "v": 1,
        "sources": sorted(view.sources),
        "seq": view.seq,
        "n_lost": view.n_lost,
        "version": view.version,
        "now_ns": view.now_ns,
        "texts": [[token, text] for token, text in view.texts.items()],
        "loading": None if view.loading is None else view.loading._asdict(),
        "ready": None if view.ready is None else view.ready._asdict(),
        "step": None if view.step is None else view.step._asdict(),
        "totals": asdict(view.totals),
        "errors": list(view.errors),
        "controls": list(view.controls),
        "graphs": [_listed(graph._asdict()) for graph in view.graphs.values()],
        "tree": _tree(view, watched or {}),
        "requests": requests.rows,
        "n_kept": len(view.requests),
        "streams": streams,
    }


class _Numbered:
    """Requests as rows, those that the view keeps first; calls name them by their place."""

    def __init__(self, view: View) -> None:
        self.rows: list[list[Any]] = []
        self._places: dict[int, int] = {}  # by the object: a call may hold one that the view has forgotten
        for request in view.requests.values():
            self.place(request)

    def place(self, request: RequestView) -> int:
        """Where the request is in the rows."""
        at = self._places.get(id(request))
        if at is None:
            at = self._places[id(request)] = len(self.rows)
            self.rows.append([_listed(getattr(request, name)) for name in RequestView.__slots__])
        return at


def _tree(view: View, watched: Mapping[str, Marks]) -> dict[str, Any]:
    tree = view.tree
    return {
        "complete": tree.complete,
        "version": tree.version,
        "step_is_over": tree.step_is_over,
        "nodes": [_node(node) for node in tree.nodes.values()],
        "marks": _marks(tree.marks),
        "watched": {name: _marks(marks) for name, marks in watched.items()},
    }


def _node(node: Node) -> list[Any]:
    return [node.id, node.parent, list(node.tokens), node.locks, node.tick]


def _marks(marks: Marks) -> dict[str, Any]:
    return {
        "new": sorted(marks.new),
        "hits": [[node, n] for node, n in marks.hits.items()],
        "evicted": [_node(node) for node in marks.evicted.values()],
    }


def _stream(view: View, stream: StreamView, requests: _Numbered) -> dict[str, Any]:
    plain = {name: getattr(stream, name) for name in StreamView.__slots__ if name not in {"parts", "calls"}}
    return plain | {
        "parts": [_listed(part) for part in stream.parts],
        "calls": [_call(view, stream, call, requests) for call in stream.calls.values()],
    }


def _call(view: View, stream: StreamView, call: CallView, requests: _Numbered) -> list[Any]:
    """The fields, with places for the requests, and whether what comes for the call is this stream's."""
    places = [requests.place(request) for request in call.requests]
    row = [places if name == "requests" else _listed(getattr(call, name)) for name in CallView.__slots__]
    return [*row, view.caller(call.id) is stream]


def _listed(value: Any) -> Any:
    """The value with tuples made lists, as JSON has it."""
    if isinstance(value, dict):
        return {name: _listed(item) for name, item in value.items()}
    return [_listed(item) for item in value] if isinstance(value, list | tuple) else value
