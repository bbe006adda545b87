"""What the author of a program holds: the state `s` of one prompt, to append to, to read from, and to fork.

Appending never blocks; reading a value waits for it. One thread at a time may append to a state; any may read.

Not here: groups of branches (`group.py`), what appended things do (`execute.py`).
"""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from nbsglang.calls import Prompt, RoleBegin
from nbsglang.errors import NoSuchVariable, UsageError
from nbsglang.events import StreamBegan, VariableSet
from nbsglang.lang import api, ops, prompts
from nbsglang.lang.allowed import ask
from nbsglang.lang.follow import Pause, Steps, follow_prompt, follow_slot
from nbsglang.lang.group import Group
from nbsglang.lang.hub import wait, wait_async
from nbsglang.lang.meta import readable
from nbsglang.lang.ops import Op, Part, caller, parts_of
from nbsglang.lang.role import Role
from nbsglang.lang.run import Run, cancelled
from nbsglang.lang.slots import Slot, Where
from nbsglang.lang.stream import Stream
from nbsglang.lang.turns import Turns

if TYPE_CHECKING:
    from nbsglang.lang.cell_here import Here


class Start(NamedTuple):
    """What a program may start from: nothing in it ever changes."""

    prompt: Prompt
    slots: Mapping[str, Slot]


class ProgramState:
    """The state of a program or of one of its branches. `ret_value` is what the program returned."""

    def __init__(self, run: Run, path: tuple[int, ...], slots: Mapping[str, Slot] | None = None) -> None:
        self.ret_value: Any = None
        self._run = run
        self._stream = Stream(run.driver.new_stream_id(), run, path)
        self._slots: dict[str, Slot] = dict(slots or {})
        self._n_unnamed = 0
        self._n_forks = 0
        self._role_open: str | None = None
        self._roles_used = False
        self._turns: Turns | None = None  # a cell's: it may open turns by itself
        self._cell: Here | None = None  # the cell that runs on this state
        self._given: tuple[Any, Mapping[str, Any]] = (None, {})  # a branch's key, and what its cell has bound outside
        self._busy = False  # the branches of a cell's loop run: only they go on
        run.streams.append(self._stream)
        if run.fault is not None:  # looked at after joining the list: a cancel sees the one or the other
            run.driver.fail([self._stream], run.fault)

    @classmethod
    def begin(cls, run: Run, label: str, start: Start | None = None) -> ProgramState:
        """The state of a program that begins, empty or from what a finished one has left."""
        state = cls(run, run.path, start.slots if start is not None else None)
        run.emit(StreamBegan(state._stream.id, "", 0, label))
        if start is not None:
            point = Slot("", state._stream.signal)
            point.fill(start.prompt)
            state._feed(ops.Start(point), (), caller())
            state._role_open = prompts.open_role(start.prompt)
            state._roles_used = any(isinstance(segment, RoleBegin) for segment in start.prompt)
        return state

    def snapshot(self) -> Start:
        """What another program may start from: prompt with ids and open role, variables with their meta info. Waits."""
        self._settle()
        self._raise_error()
        return Start(self._stream.prompt, {name: slot for name, slot in self._slots.items() if slot.done})

    # --------------------------------------------------------------------------------------- appending

    def __iadd__(self, value: object) -> ProgramState:
        """Append text, a value of the language, or a list of these. Does not wait."""
        self._append(parts_of(value), caller())
        return self

    def system(self, expr: object = None) -> Role | None:
        """Append a message of the role system; without `expr` a context manager around what it holds."""
        return self._role("system", expr)

    def user(self, expr: object = None) -> Role | None:
        """Append a message of the role user; without `expr` a context manager around what it holds."""
        return self._role("user", expr)

    def assistant(self, expr: object = None) -> Role | None:
        """Append a message of the role assistant; without `expr` a context manager around what it holds."""
        return self._role("assistant", expr)

    def var_scope(self, name: str) -> Role:
        """A context manager: the text that is appended inside becomes the variable `name` (role tags left out)."""
        return Role(self, ops.BeginScope(name), ops.EndScope(name))

    def _role(self, name: str, expr: object) -> Role | None:
        if expr is None:
            return Role(self, ops.BeginRole(name), ops.EndRole(name))
        self._append(api.role(name, expr).parts, caller())
        return None

    def _append(self, parts: tuple[Part, ...], where: Where) -> None:
        self._run.take(parts)
        if self._turns is not None:
            parts = self._turns.arranged(parts)
        for part in parts:
            if isinstance(part, (ops.BeginRole, ops.EndRole)):
                self._role_open = part.role if isinstance(part, ops.BeginRole) else None
                self._roles_used = True
            self._feed(part, self._new_slots(part), where)

    def _new_slots(self, part: Part) -> tuple[Slot, ...]:
        if isinstance(part, (ops.Gen, ops.Select)):
            name = part.name or self._unused_name()
            if isinstance(part, ops.Gen) and part.split_reasoning:
                return self._new_slot(name), self._new_slot(f"{name}_reasoning_content")
            return (self._new_slot(name),)
        return (self._new_slot(part.name),) if isinstance(part, ops.EndScope) else ()

    def _new_slot(self, name: str) -> Slot:
        slot = self._slots[name] = Slot(name, self._stream.signal)
        return slot

    def _unused_name(self) -> str:
        while f"_{self._n_unnamed}" in self._slots:
            self._n_unnamed += 1
        return f"_{self._n_unnamed}"

    def _feed(self, part: Part, slots: tuple[Slot, ...], where: Where) -> None:
        self._check_free()
        self._run.driver.feed(self._stream, Op(part, slots, where))
        if self._run.streaming:
            self._stream.signal.notify()  # who waits for a name to come up

    def _check_free(self) -> None:
        if self._busy:
            raise UsageError("this is the state outside of the branches that are running: in a branch, `s` is its own")

    # ----------------------------------------------------------------------------------------- reading

    def __getitem__(self, name: str) -> Any:
        """The value of a variable; waits for it. Raises NoSuchVariable, or the error of the call that failed."""
        return self.get_var(name)

    def __setitem__(self, name: str, value: object) -> None:
        self.set_var(name, value)

    def __contains__(self, name: object) -> bool:
        """Whether there is such a variable, or will be: its gen has been appended."""
        return name in self._slots

    def get_var(self, name: str) -> Any:
        """The same as `state[name]`."""
        return self._done_slot(name).read()

    def set_var(self, name: str, value: object) -> None:
        """Give a variable a value of your own; the prompt stays as it is."""
        self._check_free()
        slot = Slot(name, self._stream.signal)
        slot.fill(value)
        self._slots[name] = slot
        self._run.emit(VariableSet(self._stream.id, name, value if isinstance(value, str) else repr(value)))

    def get_meta_info(self, name: str) -> Any:
        """What is known about the call that made a variable: counts, finish reason, logprobs; a list if n > 1."""
        slot = self._done_slot(name)
        slot.read()
        return readable(slot.meta)

    def text(self) -> str:
        """The whole prompt as the model sees it; waits for everything appended. Raises what `error` would return."""
        self._settle()
        self._raise_error()
        return self._run.backend.render(self._stream.prompt)

    def messages(self) -> list[dict[str, str]]:
        """The finished messages, as dicts of role and content; waits and raises like `text`."""
        self._settle()
        self._raise_error()
        return prompts.messages_of(self._stream.prompt)

    def allowed(
        self,
        *,
        type: object = None,  # noqa: A002 (as in `gen`)
        backend: object = None,
        **options: Any,
    ) -> Any:
        """Which tokens may come next after the prompt, and how likely each is; waits and raises like `text`.

        `options` are those of `Engine.allowed`: one of regex, choices, json_schema and grammar, after, n. `type` says
        the constraint as in a gen. Name the `backend` where a cell's run is over. Raises Unsupported if it cannot tell.
        """
        self._settle()
        self._raise_error()
        return ask(backend or self._run.backend, self._stream.prompt, type, options)

    def sync(self) -> None:
        """Wait until everything appended is done, well or not."""
        self._settle()

    def error(self) -> BaseException | None:
        """Wait like `sync`; what went wrong, if anything did. It counts as delivered then."""
        self._settle()
        if self._run.failure is not None:
            return self._run.failure
        fault = self._stream.fault
        return fault.error() if fault is not None else None

    @property
    def stats(self) -> dict[str, float | None]:
        """Counts of the run so far: calls, tokens by kind, hit_rate, seconds, first_token_seconds."""
        return self._run.stats()

    def cancel(self) -> None:
        """Stop every call of this state and of its branches; of a program's own state, of the whole run.

        Reads of values that are not there yet raise Cancelled. Does not wait.
        """
        fault = cancelled("the program cancelled it")
        fault.delivered = True  # who asked for it knows
        path = self._stream.path
        if path == self._run.path:
            self._run.cancel(fault)
        else:
            self._run.driver.fail([s for s in list(self._run.streams) if s.path[: len(path)] == path], fault)

    def _done_slot(self, name: str) -> Slot:
        self._check_free()
        for pause in self._until_there(name):
            wait(*pause)
        slot = self._slot(name)
        wait(slot.signal, lambda: slot.done)
        return slot

    def _until_there(self, name: str) -> Iterator[Pause]:
        """With `stream=True` a reader may be earlier than the program, which runs on a thread of its own."""
        if name not in self._slots and self._program_goes_on():
            yield Pause(self._stream.signal, lambda: name in self._slots or self._run.over)

    def _slot(self, name: str) -> Slot:
        slot = self._slots.get(name)
        if slot is None:
            self._raise_error()
            known = ", ".join(map(repr, self._slots)) or "none"
            raise NoSuchVariable(f"there is no variable {name!r} in this state; there are: {known}")
        return slot

    def _program_goes_on(self) -> bool:
        run = self._run
        return run.streaming and not run.over and run.thread != threading.get_ident()

    def _settled(self) -> bool:
        return self._stream.idle and not self._program_goes_on()

    def _settle(self) -> None:
        self._check_free()
        wait(self._stream.signal, self._settled)

    def _raise_error(self) -> None:
        if self._run.failure is not None:
            raise self._run.failure.with_traceback(self._run.failure_traceback)
        if self._stream.fault is not None:
            raise self._stream.fault.error()

    # --------------------------------------------------------------------------------------- streaming

    def text_iter(self, var_name: str | None = None) -> Iterator[str]:
        """The text of a variable (or of the whole prompt) piece by piece while it comes, if run with `stream=True`.

        Otherwise all of it in one piece. Raises the error of the call after the text that there was.
        """
        for step in self._steps(var_name):
            if isinstance(step, Pause):
                wait(*step)
            else:
                yield step

    async def text_async_iter(self, var_name: str | None = None, return_meta_data: bool = False) -> AsyncIterator[Any]:
        """The same for coroutines. With `return_meta_data` pairs of text and meta info, which is there in the last."""
        for step in self._steps(var_name):
            if isinstance(step, Pause):
                await wait_async(*step)
            else:
                yield (step, {}) if return_meta_data else step
        if return_meta_data:
            yield "", ({} if var_name is None else readable(self._slot(var_name).meta))

    def _steps(self, name: str | None) -> Steps:
        if name is None:
            yield from follow_prompt(self._stream, self._settled, self._run.backend.render)
            self._raise_error()
        else:
            yield from self._until_there(name)
            yield from follow_slot(self._slot(name))

    # ---------------------------------------------------------------------------------------- branches

    def fork(self, size: int = 1, position_ids_offset: list[int] | None = None) -> Group:
        """`size` branches that start from this state as it is now, running gens included. Does not wait."""
        if position_ids_offset is not None:
            raise UsageError("position_ids_offset is not supported: positions follow from the prompt")
        if not isinstance(size, int) or size < 0:
            raise UsageError(f"fork needs a number of branches, not {size!r}")
        return Group(self, self._branches(size))

    def copy(self) -> ProgramState:
        """One branch; also a context manager, whose end does nothing."""
        return self._branches(1)[0]

    def __enter__(self) -> ProgramState:
        return self

    def __exit__(self, *exc: object) -> None:
        return None

    def _branches(self, n: int, labels: Sequence[str] | None = None) -> list[ProgramState]:
        where, point = caller(), Slot("", self._stream.signal)
        self._feed(ops.Fork(n), (point,), where)
        path = (*self._stream.path, self._n_forks)
        self._n_forks += 1
        branches = []
        for number in range(n):
            branch = ProgramState(self._run, (*path, number), self._slots)
            branch._role_open, branch._roles_used = self._role_open, self._roles_used
            branch._feed(ops.Start(point), (), where)
            label = str(number) if labels is None else labels[number]
            self._run.emit(StreamBegan(branch._stream.id, self._stream.id, number, label))
            branches.append(branch)
        return branches

    def __repr__(self) -> str:
        return f"<ProgramState {self._stream.id}: {len(self._slots)} variables>"
