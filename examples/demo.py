"""A fork/join program on the default model, in this process: its answer, the radix tree and the numbers.

make demo
"""

from __future__ import annotations

from typing import Annotated

from rich.console import Console
from rich.text import Text

import nbsglang as sgl
from nbsglang.viz.fold import fold
from nbsglang.viz.numbers import engine_figures, line
from nbsglang.viz.scene import Scene
from nbsglang.viz.terminal import tree_rich

ESSAY = (
    "Every library is a promise. Someone you will never meet put these books in order, so that someone else you will "
    "never meet can find them. Most promises are made between people who know each other. This one is made between "
    "strangers, across time, and it is kept every day by people who mostly whisper."
)


Points = Annotated[int, sgl.Regex("[1-5]")]


@sgl.function
def judge(s: sgl.ProgramState, essay: str, aspects: list[str]) -> None:
    """Judge an essay's aspects side by side, then decide."""
    s += sgl.system("You are a kind but honest critic. You answer in one short sentence.")
    s += sgl.user(f"Here is an essay: {essay}")
    branches = s.fork(len(aspects))
    for branch, aspect in zip(branches, aspects, strict=True):
        branch += sgl.user(f"What do you think of its {aspect}?")
        branch += sgl.assistant(sgl.gen("verdict", max_tokens=40, stop="\n", temperature=0))
        branch += sgl.user("So how many points does that deserve, from 1 to 5?")
        branch += sgl.assistant(sgl.gen("points", type=Points, temperature=0))
    branches.join()
    verdicts = "\n".join(f"- {aspect}: {verdict}" for aspect, verdict in zip(aspects, s["verdict"], strict=True))
    s += sgl.user(f"Three readers said:\n{verdicts}\nShould the magazine print it?")
    s += sgl.assistant(sgl.select("decision", ["Yes.", "No."]))


def main() -> None:
    """Run it and show what happened."""
    console = Console()
    console.rule("loading smollm2")
    log = sgl.EventLog()
    with sgl.Engine("smollm2", log=log) as engine:
        aspects = ["clarity", "ideas", "rhythm"]
        state = judge.run(essay=ESSAY, aspects=aspects, backend=engine, log=log)
        console.rule("the answer")
        for aspect, verdict, points in zip(aspects, state["verdict"], state["points"], strict=True):
            console.print(Text(f"{aspect:8} {points}/5  {verdict}"))
        chances = state.get_meta_info("decision")["probabilities"]
        console.print(Text(f"print it? {state['decision']} (probabilities of Yes and No: {chances})"))
        view = fold(log.since(), engine.source)
        console.rule("the radix tree of the KV cache")
        console.print(tree_rich(Scene.of_engine(view), console.width))
        console.rule("the numbers")
        for name, value in state.stats.items():
            console.print(Text(f"{name:20} {value:.3f}" if isinstance(value, float) else f"{name:20} {value}"))
        console.print(Text(line(engine_figures(view))))


if __name__ == "__main__":
    main()
