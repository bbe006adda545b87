"""The programs of a log: their streams with text, calls and tokens, and the engine's requests behind the calls.

A call's id ties the two together: a program says which stream made it, the engine which requests answer it. So a
stream has live text while the model writes, also where the program hears of it at the end only.

Not here: the radix tree (`tree.py`), how a stream looks (`lanes.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from nbsglang import events as ev
from nbsglang.viz.state import CallView, Part, RequestView, StreamView, Totals, Weighed

MAX_KEPT = 2000  # finished requests and ended streams that are remembered

REQUESTS = (ev.Queued, ev.Admitted, ev.Healed, ev.Tokens, ev.Jumped, ev.Preempted, ev.Finished, ev.Constrained)
STREAMS = (
    *(ev.StreamBegan, ev.StreamEnded, ev.StreamText, ev.StreamRole),
    *(ev.CallBegan, ev.CallEnded, ev.Scored, ev.VariableSet),
)

_K = TypeVar("_K")
_V = TypeVar("_V")


class StreamsState:
    """See the module. `text_of` gives the text of token ids."""

    def __init__(self, totals: Totals, text_of: Callable[[list[int]], str]) -> None:
        self.requests: dict[int, RequestView] = {}
        self.streams: dict[str, StreamView] = {}
        self._totals = totals
        self._text_of = text_of
        self._callers: dict[str, StreamView] = {}  # by call id

    def live_text(self, stream: StreamView) -> str:
        """What the stream's open call has written so far (of n texts the first)."""
        call = stream.open_call
        if call is None or not call.requests:
            return ""
        request = call.requests[0]
        return self._text_of(request.generated)[len(request.over) :]

    def caller(self, call_id: str) -> StreamView | None:
        """The stream that made a call, if its beginning was seen."""
        return self._callers.get(call_id)

    # ------------------------------------------------------------------------------------------ requests

    def apply_request(self, body: ev.Body, t_ns: int) -> None:
        """Take an event of one of the kinds in REQUESTS."""
        match body:
            case ev.Queued():
                self._request(body.request, body.call_id).n_prompt = body.n_prompt
            case ev.Admitted():
                self._admit(self._request(body.request, body.call_id), body)
            case ev.Tokens():
                for number, ids in zip(body.requests, body.ids, strict=False):
                    self._write(self._request(number, ""), ids, t_ns)
            case ev.Jumped():
                request = self._request(body.request, body.call_id)
                request.jumps.append((len(request.generated), len(body.ids)))
                self._totals.n_jumped += len(body.ids)
                self._write(request, body.ids, t_ns)
            case ev.Healed():
                self._request(body.request, body.call_id).over = body.over
            case ev.Preempted():
                self._request(body.request, body.call_id).state = "preempted"
                self._totals.n_preempted += 1
            case ev.Finished():
                self._finish(self._request(body.request, body.call_id), body)
            case ev.Constrained():
                if (stream := self._callers.get(body.call_id)) is not None:
                    stream.calls[body.call_id].under = f"{body.kind} {body.text}"

    def _request(self, number: int, call_id: str) -> RequestView:
        """The request, also where its beginning was not seen."""
        request = self.requests.get(number)
        if request is None:
            request = self.requests[number] = RequestView(number, call_id)
            stream = self._callers.get(call_id)
            if stream is not None:
                stream.calls[call_id].requests.append(request)
        return request

    def _admit(self, request: RequestView, body: ev.Admitted) -> None:
        request.state, request.n_hit, request.n_new = "running", body.n_hit, body.n_new
        if not request.admitted:
            request.admitted = True
            n_new = request.n_prompt - body.n_hit if request.n_prompt else body.n_new
            self._count_prompt(request, body.n_hit, n_new)

    def _count_prompt(self, request: RequestView, n_cached: int, n_computed: int) -> None:
        """Put these in the place of what was counted for the request before."""
        stream = self._callers.get(request.call_id)
        if stream is not None:
            stream.n_cached += n_cached - request.n_cached
            stream.n_computed += n_computed - request.n_computed
        request.n_cached, request.n_computed = n_cached, n_computed

    def _write(self, request: RequestView, ids: tuple[int, ...], t_ns: int) -> None:
        request.generated += ids
        stream = self._callers.get(request.call_id)
        if stream is None:
            return
        stream.n_generated += len(ids)
        call = stream.calls[request.call_id]
        if call.first_ns is None:
            call.first_ns = t_ns
            if stream.first_token_s is None and call.kind != "prefix":
                stream.first_token_s = (t_ns - call.began_ns) / 1e9
        call.last_ns = t_ns

    def _finish(self, request: RequestView, body: ev.Finished) -> None:
        request.state, request.ended, request.n_prompt = body.reason, True, body.n_prompt
        self._count_prompt(request, body.n_cached, body.n_prompt - body.n_cached)
        n_over = len(request.generated) - body.n_generated  # a token that ends the text is no part of it
        if n_over > 0:
            del request.generated[body.n_generated :]
            if (stream := self._callers.get(request.call_id)) is not None:
                stream.n_generated -= n_over
        self._totals.n_requests += 1
        self._totals.n_prompt += body.n_prompt
        self._totals.n_cached += body.n_cached
        self._totals.n_generated += body.n_generated
        _forget(self.requests, lambda old: old.ended)

    # ------------------------------------------------------------------------------------------- streams

    def apply_stream(self, body: ev.Body, t_ns: int, source: str) -> None:
        """Take an event of one of the kinds in STREAMS."""
        assert isinstance(body, STREAMS)
        stream = self.streams.get(body.stream)
        if stream is None:
            stream = self.streams[body.stream] = StreamView(body.stream, source=source, began_ns=t_ns)
        match body:
            case ev.StreamBegan():
                stream.parent, stream.branch, stream.label = body.parent, body.branch, body.label
                parent = self.streams.get(body.parent)
                stream.depth = parent.depth + 1 if parent is not None else int(bool(body.parent))
            case ev.StreamEnded():
                stream.ended, stream.ended_ns = body.how, t_ns
                for gone in _forget(self.streams, lambda old: bool(old.ended)):
                    for call_id in gone.calls:
                        self._callers.pop(call_id, None)
            case ev.StreamText():
                stream.parts.append(Part("literal", "", body.text))
            case ev.StreamRole():
                stream.parts.append(Part("role", body.role, ""))
            case ev.CallBegan():
                stream.calls[body.call_id] = CallView(body.call_id, body.kind, body.name, t_ns)
                self._callers[body.call_id] = stream
            case ev.CallEnded():
                self._end_call(stream, body, t_ns)
            case ev.Scored():
                if (call := stream.calls.get(body.call_id)) is not None:
                    call.scores = _weighed(body)
            case ev.VariableSet():
                stream.parts.append(_part_of_variable(stream, body.name, body.text))

    def _end_call(self, stream: StreamView, body: ev.CallEnded, t_ns: int) -> None:
        call = stream.calls.get(body.call_id)
        if call is None:  # its beginning was not seen
            call = stream.calls[body.call_id] = CallView(body.call_id, "gen", "", t_ns)
        if body.error and call.kind != "prefix":
            if text := self.live_text(stream):
                stream.parts.append(Part("partial", call.name, text, call.under))
            stream.error = stream.error or body.error
        call.error = body.error


def _part_of_variable(stream: StreamView, name: str, text: str) -> Part:
    """A variable is what the latest call wrote if it bears that call's name; else the program has set it."""
    call = next((call for call in reversed(stream.calls.values()) if call.kind != "prefix"), None)
    if call is None or call.name != name or call.error != "" or call.told:
        return Part("value", name, text)
    call.told = True
    return Part("choice" if call.kind == "score" else "gen", name, text, call.under, call.scores)


def _weighed(body: ev.Scored) -> tuple[Weighed, ...]:
    rows = zip(body.choices, body.scores, body.shares, strict=False)
    return tuple(Weighed(*row, n == body.chosen) for n, row in enumerate(rows))


def _forget(kept: dict[_K, _V], is_over: Callable[[_V], bool]) -> list[_V]:
    """Drop the oldest that are over, once there are many; returns them."""
    if len(kept) <= 2 * MAX_KEPT:
        return []
    over = [key for key, value in kept.items() if is_over(value)]
    return [kept.pop(key) for key in over[: len(kept) - MAX_KEPT]]
