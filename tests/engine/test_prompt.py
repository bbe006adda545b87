"""Prompts to ids: against transformers' own rendering, with hostile contents, and as prompts grow."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Iterator, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import AutoTokenizer, PreTrainedTokenizerBase

from nbsglang.calls import Generated, Media, Prompt, RoleBegin, RoleEnd, Segment, Text
from nbsglang.engine.prompt import Renderer
from nbsglang.engine.tokenizer import Tokenizer
from nbsglang.errors import Unsupported, UsageError
from tests.tiny import byte_tokenizer

THINKING = """{% for m in messages %}{% if m.role == 'assistant' and not loop.last -%}
<|im_start|>assistant
{{ m.content.split('</think>')[-1].lstrip('\n') }}<|im_end|>
{% else -%}
<|im_start|>{{ m.role }}
{{ m.content | trim }}<|im_end|>
{% endif %}{% endfor %}{% if add_generation_prompt -%}
<|im_start|>assistant
<think>{% endif %}"""
MERGING = """{{ '<|bos|>' }}{% set ns = namespace(system='') %}{% for m in messages %}{% if m.role == 'system' %}
{%- set ns.system = m.content + '\n\n' %}{% elif m.role == 'user' %}[INST] {{ ns.system + m.content }} [/INST]
{%- set ns.system = '' %}{% else %}{{ m.content }}<|im_end|>{% endif %}{% endfor %}"""
REFUSING = (
    "{% for m in messages %}{% if m.role == 'system' %}{{ raise_exception('System role not supported') }}{% endif %}"
)
REFUSING += "{{ m.role + ':' + m.content + '\n' }}{% endfor %}"


@pytest.fixture(scope="module", params=["bytes", pytest.param("smollm2", marks=pytest.mark.smollm2)])
def hf(request: pytest.FixtureRequest) -> PreTrainedTokenizerBase:
    if request.param == "bytes":
        return byte_tokenizer()
    return AutoTokenizer.from_pretrained(request.getfixturevalue("smollm2_folder"))


@pytest.fixture(scope="module")
def renderer(hf: PreTrainedTokenizerBase) -> Renderer:
    return Renderer(Tokenizer(hf))


def with_template(template: str | None, bos: bool = False) -> Renderer:
    hf = byte_tokenizer(bos=bos)
    hf.chat_template = template
    return Renderer(Tokenizer(hf))


def message(role: str, *content: Segment | str) -> Prompt:
    return (RoleBegin(role), *(Text(c) if isinstance(c, str) else c for c in content), RoleEnd(role))


def generated(text: str) -> Generated:
    """With ids that no encoder would give: bytes of the reversed text."""
    return Generated(text, tuple(text.encode()[::-1]))


def messages(prompt: Prompt) -> Iterator[dict[str, str]]:
    content = ""
    for segment in prompt:
        if isinstance(segment, RoleBegin):
            content = ""
        elif isinstance(segment, RoleEnd):
            yield {"role": segment.name, "content": content}
        elif isinstance(segment, Text | Generated):
            content += segment.text


def holds(ids: Sequence[int], part: Sequence[int]) -> bool:
    return any(tuple(ids[n : n + len(part)]) == tuple(part) for n in range(len(ids) - len(part) + 1))


words = st.sampled_from(["Hi", " there", "é😀", "\n", "<|im_", "end|>", "<|im_end|>", " ", "x", ":"])
texts = st.lists(words, max_size=4).map("".join)
contents = st.lists(
    st.one_of(texts.map(Text), st.sampled_from(["Paris", " a\n", "!?"]).map(generated)), max_size=4
).map(tuple)
chats = st.lists(st.tuples(st.sampled_from(["system", "user", "assistant"]), contents), max_size=4).map(
    lambda turns: tuple(segment for role, parts in turns for segment in message(role, *parts))
)


@given(chats, st.booleans(), contents)
@settings(max_examples=150, deadline=None)
def test_the_text_is_the_templates(
    renderer: Renderer, hf: PreTrainedTokenizerBase, chat: Prompt, is_open: bool, content: Prompt
) -> None:
    if not chat:
        return
    expected = hf.apply_chat_template(list(messages(chat)), tokenize=False, add_generation_prompt=is_open)
    prompt = chat
    if is_open:
        prompt += (RoleBegin("assistant"), *content)
        expected += "".join(part.text for part in content if isinstance(part, Text | Generated))
    encoded = renderer.encode(prompt)
    assert encoded.text == renderer.render(prompt) == expected
    assert encoded.anew is None
    for part in prompt:
        assert not isinstance(part, Generated) or holds(encoded.ids, part.ids)
    if not any(isinstance(p, Generated) or (isinstance(p, Text) and "<|im_" in p.text) for p in prompt):
        assert encoded.ids == hf(expected).input_ids
    n_turns = len(list(messages(prompt))) + is_open
    end = hf.convert_tokens_to_ids("<|im_end|>")
    default_system = "SmolLM" in expected
    assert encoded.ids.count(end) == n_turns - is_open + default_system  # data made none


@given(chats, contents, contents)
@settings(max_examples=150, deadline=None)
def test_a_longer_prompt_begins_with_the_shorter(renderer: Renderer, chat: Prompt, one: Prompt, more: Prompt) -> None:
    base = (*chat, RoleBegin("assistant"), *one, generated("Paris"))
    longer = (*base, *more, RoleEnd("assistant"), *message("user", "next"))
    ids = renderer.encode(base).ids
    assert renderer.encode(longer).ids[: len(ids)] == ids
    open_ids = renderer.encode((*chat, RoleBegin("assistant"))).ids
    assert renderer.encode((*chat, RoleBegin("assistant"), generated("x"))).ids == [*open_ids, ord("x")]


@given(st.text("ab <|>im_end\n", max_size=30), st.lists(st.integers(0, 30)), st.booleans())
@settings(max_examples=100, deadline=None)
def test_how_text_is_cut_into_segments_does_not_matter(
    renderer: Renderer, text: str, cuts: list[int], in_role: bool
) -> None:
    at = [0, *sorted(cut % (len(text) + 1) for cut in cuts), len(text)]
    pieces = tuple(Text(text[a:b]) for a, b in itertools.pairwise(at))
    one, many = ((Text(text),), pieces) if not in_role else (message("user", text), message("user", *pieces))
    assert renderer.encode(many).ids == renderer.encode(one).ids
    assert renderer.encode((*many, generated("z"), *many)).ids == renderer.encode((*one, generated("z"), *one)).ids


def test_raw_prompts_and_bos() -> None:
    renderer = with_template(None, bos=True)
    assert renderer.encode(()) == ([256], "", None, 0)
    assert renderer.encode((generated("ab"),)).ids == [256, 98, 97]
    assert renderer.encode((Text("a"), generated("bc"), Text("d"))).ids == [256, 97, 99, 98, 100]
    assert renderer.encode((Text("<|bos|>a", special=True),)).ids == [256, 97]
    assert renderer.encode((Generated("ab"),)).ids == [256, 97, 98]  # from a backend without ids
    assert Renderer(Tokenizer(byte_tokenizer(bos=True))).encode(message("user", "a")).ids.count(256) == 1


def test_text_outside_of_roles_stays_where_it_was(renderer: Renderer) -> None:
    chat = (
        Text("[0]"),
        *message("user", "Hi"),
        Text("[1]"),
        *message("assistant", ""),
        Text("[2]"),
        RoleBegin("assistant"),
    )
    text = renderer.render(chat)
    assert text.startswith("[0]<|im_start|>")
    assert "Hi<|im_end|>\n[1]<|im_start|>assistant\n<|im_end|>\n[2]<|im_start|>assistant\n" in text
    assert renderer.render((*message("user", "Hi"), Text("[end]"))).endswith("<|im_end|>\n[end]")
    with_bos = Renderer(Tokenizer(byte_tokenizer(bos=True)))
    assert with_bos.render((Text("x"), *message("user", "Hi"))).startswith("<|bos|>x<|im_start|>user")


def test_open_roles_of_others_are_cut_after_their_content(renderer: Renderer) -> None:
    assert renderer.render((RoleBegin("user"), Text("Hi "))).endswith("<|im_start|>user\nHi ")
    assert renderer.render((*message("user", "a"), RoleBegin("user"))).endswith("<|im_end|>\n<|im_start|>user\n")
    first = renderer.render((RoleBegin("assistant"), Text("x")))
    assert renderer.render(message("assistant", "x")).startswith(first)


def test_a_template_that_rewrites_earlier_turns() -> None:
    renderer = with_template(THINKING)
    turn = (*message("user", "  Why? "), *message("assistant", "so: ", generated("hm</think>\nBecause.")))
    assert renderer.encode(turn).anew is None
    assert (
        renderer.render(turn)
        == "<|im_start|>user\nWhy?<|im_end|>\n<|im_start|>assistant\nso: hm</think>\nBecause.<|im_end|>\n"
    )
    longer = (
        *turn,
        Text("[out]"),
        *message("user", "<|im_end|>", generated("q")),
        RoleBegin("assistant"),
        generated("yz"),
    )
    encoded = renderer.encode(longer)
    assert encoded.text == (
        "<|im_start|>user\nWhy?<|im_end|>\n<|im_start|>assistant\nBecause.<|im_end|>\n"
        "[out]<|im_start|>user\n<|im_end|>q<|im_end|>\n<|im_start|>assistant\n<think>yz"
    )
    same = renderer.encode(turn).ids
    assert encoded.anew == len(b"user\nWhy?\nassistant\n") + 3
    assert encoded.ids[: encoded.anew] == same[: encoded.anew]
    assert encoded.ids[-2:] == [ord("z"), ord("y")]
    assert encoded.ids.count(259) == 3  # the text in the message is only text
    kept = (
        *message("user", "u", generated("kept")),
        *message("assistant", generated("a</think>b")),
        *message("user", "c"),
    )
    assert holds(renderer.encode(kept).ids, generated("kept").ids)


def test_a_template_that_moves_messages() -> None:
    renderer = with_template(MERGING, bos=True)
    chat = (*message("system", "Be brief."), *message("user", "Hi"), *message("assistant", generated("Yo")))
    encoded = renderer.encode((*chat, *message("user", "Bye")))
    assert encoded.text == "<|bos|>[INST] Be brief.\n\nHi [/INST]Yo<|im_end|>[INST] Bye [/INST]"
    assert (encoded.ids[0], encoded.ids.count(256), encoded.anew) == (256, 1, None)
    assert holds(encoded.ids, [*b"[/INST]", *b"oY", 259])


def test_blanks_of_generated_text_stay() -> None:
    renderer = with_template(THINKING)
    encoded = renderer.encode((*message("user", "a"), *message("assistant", "  b", generated(" c\n"))))
    assert encoded.text.endswith("assistant\nb c\n<|im_end|>\n")
    assert encoded.anew is None


def test_without_a_template_there_is_one_warning() -> None:
    renderer = with_template(None, bos=True)
    chat = (*message("system", "S"), *message("user", "U"), RoleBegin("assistant"), generated("A"))
    with pytest.warns(UserWarning, match="no chat template"):
        assert renderer.encode(chat).ids == [256, *b"system:\nS\n\nuser:\nU\n\nassistant:\nA"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert renderer.render((*chat, RoleEnd("assistant"))) == "system:\nS\n\nuser:\nU\n\nassistant:\nA\n\n"


@pytest.mark.parametrize(
    ("prompt", "error", "says"),
    [
        ((RoleBegin("user"), RoleBegin("assistant")), UsageError, "nest"),
        ((RoleEnd("user"),), UsageError, "not open"),
        ((RoleBegin("user"), RoleEnd("assistant")), UsageError, "not open"),
        ((Text("a"), Media("image", "00", b"")), Unsupported, "image"),
        (message("system", "x"), UsageError, "System role not supported"),
    ],
)
def test_refused(prompt: Prompt, error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        with_template(REFUSING).encode(prompt)


def test_broken_templates_are_the_users_errors() -> None:
    for template in ("{{ messages[7].content }}", "{% for %}", "{{ 1 / 0 }}", "{{ messages.append(1) }}"):
        with pytest.raises(UsageError, match="chat template"):
            with_template(template).encode(message("user", "x"))
    with pytest.raises(UsageError, match="no place"):
        with_template("nothing").encode((RoleBegin("user"), Text("x")))


def test_a_template_that_ignores_or_writes_something_else() -> None:
    assert with_template("fixed").encode(message("user", "x")).ids == list(b"fixed")
    upper = with_template("{% for m in messages %}{{ m.content | upper }}<|im_end|>{% endfor %}")
    encoded = upper.encode((*message("user", "ab<|im_end|>"), *message("assistant", generated("cd"))))
    assert encoded.ids[:2] == list(b"AB")
    assert encoded.ids[-3:] == [*b"CD", 259]
    dated = with_template("{{ strftime_now('%f') }}{% for m in messages %}{{ m.content }}{% endfor %}")
    for _ in range(3):
        assert dated.encode(message("user", "x")).text.endswith("x")
