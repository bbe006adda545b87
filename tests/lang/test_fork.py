"""Branches: what they start with, the hint for their prefix, joining."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import nbsglang as sgl
from nbsglang.calls import Call, Capabilities, GenCall
from nbsglang.errors import JoinError, ProgramError, UsageError

CHATML = sgl.MockBackend().render


def counting() -> Any:
    """A script that answers 0, 1, 2, ..."""
    numbers = iter(range(1000))
    return lambda call: str(next(numbers))


def run(body: Any, script: Any = "t", **options: Any) -> Any:
    backend = script if hasattr(script, "submit") else sgl.MockBackend(script)
    return sgl.function(body).run(backend=backend, **options)


def test_a_branch_is_a_snapshot_of_its_parent() -> None:
    def body(s):
        s += sgl.system("sys")
        s += sgl.user_begin() + "open " + sgl.gen("x")
        forks = s.fork(2)
        s += "parent only " + sgl.gen("y") + sgl.gen("x")
        forks[0] += "b0 " + sgl.gen("y") + sgl.user_end()
        forks[1]["x"] = "mine"
        deep = forks[0].fork(1)[0]
        deep += sgl.assistant("deep")
        assert "y" not in forks[1]
        return (
            s["x"], forks[0]["x"], forks[1]["x"], deep["x"], deep["y"] == forks[0]["y"], deep.messages(),
            forks[1].text(),
            deep.get_meta_info("x") == forks[0].get_meta_info("x"),
        )  # fmt: skip

    names = iter(["x0", "later", "later", "later"])
    x, b0, b1, deep_x, same, messages, b1_text, same_meta = run(body, lambda call: next(names)).ret_value
    assert (x, b0, b1, deep_x, same, same_meta) == ("later", "x0", "mine", "x0", True, True)
    assert [m["role"] for m in messages] == ["system", "user", "assistant"]
    assert messages[1]["content"].startswith("open x0b0 ")
    assert b1_text == "<|im_start|>system\nsys<|im_end|>\n<|im_start|>user\nopen x0"


def test_fork_and_append_do_not_wait() -> None:
    def body(s):
        began = time.monotonic()
        s += "p" + sgl.gen("x")
        forks = s.fork(3)
        forks += sgl.gen("y")
        quick = time.monotonic() - began
        forks.join()
        return quick, time.monotonic() - began

    quick, whole = run(body, sgl.MockBackend("t", delay=0.3)).ret_value
    assert quick < 0.25
    assert 0.6 <= whole < 1.1  # the branches side by side, after their parent's gen


def test_the_shared_prefix_is_hinted_once() -> None:
    def body(s):
        s += "long prefix"
        forks = s.fork(3)
        forks += sgl.gen("x")
        for fork in forks:
            inner = fork.fork(2)  # right after a gen: nothing new to compute
            inner[0].fork(2).join()  # right after a fork: neither
            inner += "q" + sgl.gen("y")
            inner.join()
        s.fork(2).join()  # hinted before
        s += "more"
        s.fork(1).join()  # nobody to share with
        s.fork(2).join()

    mock = sgl.MockBackend("t")
    run(body, mock)
    hints = [CHATML(c.prompt) for c in mock.calls if isinstance(c, GenCall) and c.sampling.max_tokens == 0]
    assert hints == ["long prefix", "long prefixmore"]
    assert len({c.call_id for c in mock.calls}) == len(mock.calls) == 2 + 3 + 6
    silent = sgl.MockBackend("t", capabilities=Capabilities(prefix_hint=False))
    run(lambda s: (s.__iadd__("p"), s.fork(2).join()), silent)
    assert silent.calls == []


def test_a_failing_hint_fails_no_branch() -> None:
    def script(call: Call) -> str:
        return "t"

    class Picky(sgl.MockBackend):
        def submit(self, call: Any, inbox: Any) -> None:
            if isinstance(call, GenCall) and call.sampling.max_tokens == 0:
                raise RuntimeError("no hints")
            super().submit(call, inbox)

    def body(s):
        s += "p"
        forks = s.fork(2)
        forks += sgl.gen("x")
        forks.join()
        return s["x"]

    assert run(body, Picky(script)).ret_value == ["t", "t"]


def test_group_appends_one_for_all_a_list_or_a_function() -> None:
    def body(s):
        forks = s.fork(2)
        forks += "all "
        forks += ["a ", sgl.gen("x")]
        forks += lambda i: f"{i} "
        forks[1] += "only"
        with pytest.raises(UsageError, match="3 expressions for 2 branches"):
            forks += ["a", "b", "c"]
        with pytest.raises(UsageError, match="replaced"):
            forks[0] = s
        return len(forks), [f.text() for f in forks], forks[0].text()

    assert run(body).ret_value == (2, ["all a 0 ", "all t1 only"], "all a 0 ")


def test_join_gathers_aligned_lists() -> None:
    def body(s):
        s += sgl.gen("before")
        s["kept"] = 1
        forks = s.fork(3)
        for i, fork in enumerate(forks):
            fork += sgl.gen("x")
            fork += sgl.gen()  # unnamed ones stay where they are
            if i != 1:
                fork += sgl.gen("some")
            if i == 2:
                fork["before"] = "changed"
        forks.join()
        assert "_0" not in s
        return s["x"], s["some"], s["before"], s["kept"], s.get_meta_info("some")[1]

    x, some, before, kept, meta = run(body).ret_value
    assert (x, some, before, kept, meta) == (["t"] * 3, ["t", None, "t"], [None, None, "changed"], 1, None)


def test_join_appends_texts_with_their_ids_and_roles() -> None:
    def body(s):
        s += "p:"
        forks = s.fork(3)
        forks += lambda i: f"<{i}" + sgl.gen("x") + ">"
        forks[2] += sgl.user("u")
        forks.join("concate_and_append")
        s += "!"
        return s.text(), s.messages(), s._stream.prompt

    text, messages, prompt = run(body, counting()).ret_value
    assert text == "p:<00><11><22><|im_start|>user\nu<|im_end|>\n!"
    assert messages == [{"role": "user", "content": "u"}]
    assert [part.ids for part in prompt if hasattr(part, "ids")] == [(48,), (49,), (50,)]


def test_no_branches() -> None:
    def body(s):
        forks = s.fork(0)
        forks += sgl.gen("x")
        forks.join()
        return len(forks), "x" in s

    assert run(body).ret_value == (0, False)
    for wrong in (-1, "2", 1.5):
        with pytest.raises(UsageError, match="number of branches"):
            run(lambda s: s.fork(wrong))  # noqa: B023
    with pytest.raises(UsageError, match="position_ids_offset"):
        run(lambda s: s.fork(1, [0]))
    with pytest.raises(UsageError, match="modes"):
        run(lambda s: s.fork(1).join("sum"))


def test_a_joined_branch_takes_nothing_more_but_can_be_read() -> None:
    def body(s):
        forks = s.fork(1)
        forks += sgl.gen("x")
        forks.join()
        forks.join()
        with pytest.raises(UsageError, match="has been joined"):
            forks += "more"
        return forks[0]["x"], forks[0].text()

    assert run(body).ret_value == ("t", "t")


def test_copy_is_a_branch_and_a_context_manager() -> None:
    def body(s):
        s += "p "
        with s.copy() as c:
            c += sgl.gen("x")
            assert "x" not in s
            return c.text(), s.text()

    assert run(body).ret_value == ("p t", "p ")


def fail_on(*words: str) -> Any:
    def script(call: Call) -> str:
        text = CHATML(call.prompt)
        if any(text.endswith(word) for word in words):
            raise RuntimeError(f"cannot: {text}")
        return "t"

    return script


def test_a_strict_join_raises_one_error_after_all_have_ended() -> None:
    def body(s):
        forks = s.fork(4)
        forks += lambda i: f"b{i}"
        forks += sgl.gen("x")
        forks += " " + sgl.gen("y")
        with pytest.raises(JoinError, match=r"2 of 4 branches failed\n  branch 1: .*b1\n  branch 3: ") as caught:
            forks.join()
        assert all(fork._stream.idle for fork in forks)
        return caught.value, s["x"], s["y"]

    error, x, y = run(body, sgl.MockBackend(fail_on("b1", "b3"), delay=0.01)).ret_value
    assert [type(e) for e in error.errors] == [type(None), ProgramError, type(None), ProgramError]
    assert isinstance(error.errors[1].__cause__, RuntimeError)
    assert "in body" in str(error.errors[1])
    assert x == y == ["t", None, "t", None]


def test_a_join_that_is_not_strict_leaves_holes_and_the_errors() -> None:
    def body(s):
        forks = s.fork(3)
        forks += lambda i: f"b{i}" + sgl.gen("x")
        forks.join(strict=False)
        texts = s.fork(2)
        texts += lambda i: f"c{i}" + sgl.gen("x")
        texts.join("concate_and_append", strict=False)
        return s["x"], [e is None for e in forks.errors], s.text()

    assert run(body, fail_on("b1", "c0")).ret_value == (["t", None, "t"], [True, False, True], "c1t")


def test_a_branch_of_a_failed_parent_fails_with_its_error() -> None:
    def body(s):
        s += "bad" + sgl.gen("x")
        forks = s.fork(2)
        forks += sgl.gen("y")
        with pytest.raises(JoinError) as caught:
            forks.join()
        with pytest.raises(ProgramError, match="gen 'x' failed"):
            forks[0]["y"]
        return caught.value.errors

    errors = run(body, fail_on("bad")).ret_value
    assert ["gen 'x' failed" in str(e) for e in errors] == [True, True]


def test_forks_that_are_never_joined_are_waited_for() -> None:
    def body(s):
        forks = s.fork(2)
        forks += lambda i: f"b{i}" + sgl.gen("x")

    mock = sgl.MockBackend("t", delay=0.05)
    run(body, mock)
    assert mock.cancelled == []
    with pytest.raises(ProgramError, match="b1"):
        run(body, fail_on("b1"))


Tree = st.recursive(st.just([]), lambda inner: st.lists(inner, max_size=3), max_leaves=8)


@given(Tree)
def test_every_branch_of_a_tree_sees_its_own_path_only(tree: Any) -> None:
    def grow(s: Any, node: Any, path: str, found: list[tuple[str, Any]]) -> None:
        s += f"{path};"
        s += sgl.gen("x")
        found.append((path, s))
        forks = s.fork(len(node))
        for number, (child, fork) in enumerate(zip(node, forks, strict=True)):
            grow(fork, child, f"{path}{number}", found)
        s += "end"  # after the fork: no branch has it

    def body(s):
        found: list[tuple[str, Any]] = []
        grow(s, tree, "r", found)
        return [(path, branch.text()) for path, branch in found]

    for path, text in run(body, "t").ret_value:
        assert text == "".join(f"{path[: i + 1]};t" for i in range(len(path))) + "end"
