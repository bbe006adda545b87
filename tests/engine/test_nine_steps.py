"""The nine steps of the SGLang paper's figure 3: two chats, few-shot queries, sampling, in a small pool.

Texts are bytes, and each turn asks for one token, so that the tree holds just the prompts. Sizes are
chosen so that memory is short at the steps where it is in the figure.
"""

from __future__ import annotations

from nbsglang.calls import SamplingParams
from nbsglang.engine.core import Core
from nbsglang.events import EventLog, NodeAdded, NodeEvicted, NodeSplit
from tests.engine.drive import GREEDY, Job, drive, make_core

SYSTEM = "s" * 10  # "You are a helpful assistant."
FIRST_1, FIRST_2, FIRST_3 = "a" * 6, "b" * 60, "c" * 30  # turns of the first chat, its answers included
SECOND_1, SECOND_2 = "d" * 6, "e" * 10  # turns of the second chat
SHOTS, Q1, Q2, Q3 = "f" * 20, "g" * 6, "h" * 6, "i" * 6
N_SLOTS = len(SYSTEM + FIRST_1 + FIRST_2 + SECOND_1) + 4


class Story:
    """Runs prompts and tells what each did to the tree."""

    def __init__(self) -> None:
        self.core: Core
        self.log: EventLog
        self.core, self.log = make_core(n_slots=N_SLOTS, chunk_tokens=64, lookahead=1)
        self.names: dict[int, str] = {}
        self.new: list[str] = []
        self.split: list[str] = []
        self.evicted: list[str] = []
        self.hits: list[int] = []

    def run(self, *prompts: str, max_new: int = 1, params: SamplingParams = GREEDY) -> None:
        seq = self.log.seq
        jobs = [Job(tuple(p.encode()), max_new, params=params) for p in prompts]
        drive(self.core, self.log, jobs)
        bodies = [event.body for event in self.log.since(seq)]
        self.new = [name(b.tokens) for b in bodies if isinstance(b, NodeAdded)]
        for body in bodies:
            if isinstance(body, NodeAdded):
                self.names[body.node] = name(body.tokens)
        self.split = [self.names[b.node] for b in bodies if isinstance(b, NodeSplit)]
        self.evicted = [self.names[b.node] for b in bodies if isinstance(b, NodeEvicted)]
        self.hits = [job.request.n_cached for job in jobs]
        for node in self.core.tree.nodes():  # a split leaves the lower part under the old id
            self.names[node.id] = name(tuple(node.key.tolist()))

    def edges(self) -> set[str]:
        """Every path of the tree, its edges parted by slashes."""
        return {
            "/".join(name(tuple(n.key.tolist())) for n in node.path())
            for node in self.core.tree.nodes()
            if not node.children
        }


def name(tokens: tuple[int, ...]) -> str:
    """An edge's letters, each once: "ssaa" is "sa"."""
    return "".join(dict.fromkeys(chr(t) if t < 128 else "?" for t in tokens))


def test_the_nine_steps():
    story = Story()
    assert story.edges() == set()  # (1)

    story.run(SYSTEM + FIRST_1)  # (2) one edge to one new node
    assert (story.hits, story.new, story.split, story.evicted) == ([0], ["sa"], [], [])
    assert story.edges() == {"sa"}

    story.run(SYSTEM + FIRST_1 + FIRST_2)  # (3) the first turn is a hit, the new turn a new node
    assert (story.hits, story.new, story.split, story.evicted) == ([16], ["b"], [], [])
    assert story.edges() == {"sa/b"}

    story.run(SYSTEM + SECOND_1)  # (4) the node of (2) is split so that both chats share it
    assert (story.hits, story.new, story.split, story.evicted) == ([10], ["d"], ["sa"], [])
    assert story.edges() == {"s/a/b", "s/d"}

    story.run(SYSTEM + SECOND_1 + SECOND_2)  # (5) memory is short: the first chat's last turn goes
    assert (story.hits, story.new, story.split, story.evicted) == ([16], ["e"], [], ["b"])
    assert story.edges() == {"s/a", "s/d/e"}

    story.run(SHOTS + Q1)  # (6) nothing in common: the root gets a second branch
    assert (story.hits, story.new, story.split, story.evicted) == ([0], ["fg"], [], [])
    assert story.edges() == {"s/a", "s/d/e", "fg"}

    story.run(SHOTS + Q2, SHOTS + Q3)  # (7) the node of (6) is split, the shots are shared
    assert (story.hits, story.new, story.split, story.evicted) == ([20, 20], ["h", "i"], ["fg"], [])
    assert story.edges() == {"s/a", "s/d/e", "f/g", "f/h", "f/i"}

    story.run(SYSTEM + FIRST_1 + FIRST_3)  # (8) all nodes of the second chat are the least recently used
    assert (story.hits, story.new, story.split) == ([16], ["c"], [])
    assert story.evicted == ["e", "d"]
    assert story.edges() == {"s/a/c", "f/g", "f/h", "f/i"}

    sampled = SamplingParams(temperature=1.5, seed=1)
    story.run(*[SHOTS + Q2] * 3, max_new=9, params=sampled)  # (9) more answers to one question
    assert story.hits == [25, 25, 25]  # everything but the last token, whose logits are needed
    assert story.evicted[:2] == ["g", "i"]  # the other questions first, then older turns of the chat
    assert len(story.evicted) >= 3
    assert {edge.split("/")[0] for edge in story.edges()} >= {"f"}
    assert "f/h" in {"/".join(edge.split("/")[:2]) for edge in story.edges()}
