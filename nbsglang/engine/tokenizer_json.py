"""The JSON of a Rust tokenizer (`tokenizer.json`): the few things that the engine reads or changes in its own copies.

Not here: what the copies are for (`encoder.py`).
"""

from __future__ import annotations

import json
from typing import Any, TypeAlias

import tokenizers

Json: TypeAlias = dict[str, Any]


def load(spec: Json) -> tokenizers.Tokenizer:
    """The tokenizer that the JSON describes."""
    return tokenizers.Tokenizer.from_str(json.dumps(spec))


def _parts(step: Json | None, key: str) -> list[Json]:
    """A normalizer, pre-tokenizer or decoder as a flat list of steps."""
    if step is None:
        return []
    return [leaf for part in step[key] for leaf in _parts(part, key)] if step["type"] == "Sequence" else [step]


def drop_prefix(spec: Json) -> bool:
    """Let no step put a space before a text. Returns whether one did."""
    changed = False
    for step in _parts(spec["pre_tokenizer"], "pretokenizers"):
        if step["type"] == "Metaspace" and step.get("prepend_scheme", "always") != "never":
            step["prepend_scheme"] = "never"
            step.pop("add_prefix_space", None)
            changed = True
        if step["type"] == "ByteLevel" and step.get("add_prefix_space"):
            step["add_prefix_space"] = False
            changed = True
    steps = _parts(spec["normalizer"], "normalizers")
    kept = [step for step in steps if step["type"] != "Prepend"]
    if len(kept) < len(steps):
        spec["normalizer"] = {"type": "Sequence", "normalizers": kept} if kept else None
        changed = True
    return changed


def rename_special(spec: Json, names: dict[int, str]) -> None:
    """Give special tokens new names, wherever the JSON names them, so that their old names are only text."""
    new = {}
    for token in spec["added_tokens"]:
        if token["id"] in names:
            new[token["content"]] = names[token["id"]]
            token |= {"content": names[token["id"]], "normalized": False, "single_word": False}
    model = spec["model"]
    if isinstance(model["vocab"], dict):
        model["vocab"] = {new.get(text, text): token for text, token in model["vocab"].items()}
    else:
        model["vocab"] = [[new.get(text, text), score] for text, score in model["vocab"]]
    if model.get("unk_token") in new:
        model["unk_token"] = new[model["unk_token"]]
    if "merges" in model:  # no sequence of merges may lead to the old name
        joined = (merge.replace(" ", "", 1) if isinstance(merge, str) else "".join(merge) for merge in model["merges"])
        model["merges"] = [merge for merge, text in zip(model["merges"], joined, strict=True) if text not in new]
    spec["post_processor"] = None  # it may name them as well, and is not wanted


def unknown_id(spec: Json) -> int | None:
    """The id for what the vocabulary cannot spell, if it has one."""
    model = spec["model"]
    if isinstance(model.get("unk_id"), int):
        return int(model["unk_id"])
    found = model["vocab"].get(model.get("unk_token")) if isinstance(model.get("vocab"), dict) else None
    return found if isinstance(found, int) else None


def spelling(spec: Json) -> str:
    """How token strings spell bytes, see `Encoder.spelling`."""
    decoders = _parts(spec["decoder"], "decoders")
    kinds = {step["type"] for step in decoders}
    if "ByteLevel" in kinds:
        return "bytes"
    replaced = any(
        step["type"] == "Replace" and "▁" in json.dumps(step["pattern"], ensure_ascii=False) for step in decoders
    )
    return "spaces" if replaced or kinds & {"Metaspace", "ByteFallback"} else ""
