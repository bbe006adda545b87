"""What the workloads took elsewhere and are to take here, in seconds, on the reference machine.

Source: measured when the project was designed, on one NVIDIA H200 with a model of Llama-3.1-8B's shape in
bfloat16 with random weights: the peers at their defaults with prefix caching on, warmed up once with other tokens;
the floors from its measured memory bandwidth and matrix rate, with each shared prefix computed and read once. The
peers' select4 makes one token after each choice instead of scoring it, which favours them.

Not here: our own results (`benchmarks/results/`).
"""

from __future__ import annotations

from typing import NamedTuple


class Goal(NamedTuple):
    """Seconds of one workload."""

    vllm: float
    sglang: float
    floor: float
    goal: float

    @property
    def best_peer(self) -> float:
        """The faster of the peers."""
        return min(self.vllm, self.sglang)


PEERS = {"vllm": "vLLM 0.26.0", "sglang": "SGLang 0.5.17"}
MACHINE = "one NVIDIA H200, torch 2.11.0+cu130"
GOALS = {
    "few_shot": Goal(2.54, 3.72, 1.56, 2.0),
    "select4": Goal(1.58, 2.33, 0.68, 0.95),
    "tree_of_thought": Goal(12.1, 10.4, 3.8, 5.5),
    "judge": Goal(8.56, 15.3, 4.3, 5.8),
    "self_consistency": Goal(8.26, 7.25, 1.3, 2.0),  # 2.6 first
    "agents": Goal(6.58, 6.80, 3.8, 5.0),
    "chat_short": Goal(2.55, 2.63, 1.9, 2.3),
    "chat_long": Goal(19.7, 18.9, 12.0, 15.5),
    "plain": Goal(7.70, 6.78, 4.6, 5.9),
    "single": Goal(2.60, 2.61, 1.9, 2.35),
    "rag": Goal(3.19, 3.46, 1.9, 2.4),
    "skeleton": Goal(2.34, 2.17, 1.0, 1.35),
    "judge_one": Goal(4.18, 4.82, 2.95, 3.3),
    "tree_one": Goal(4.36, 4.34, 2.85, 3.2),
    "json": Goal(5.19, 4.35, 0.9, 0.9),  # the floor is 0.4 with jumps
}
START_UP = {"vllm": 93.0, "sglang": 93.0, "goal": 10.0}  # constructor to first token, compile caches cold
