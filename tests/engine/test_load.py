"""What a user can name as a model, and what is refused: on tiny models in temporary folders."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import nn

from nbsglang.engine import convert
from nbsglang.engine.load import Loaded, load, torch_device, torch_dtype
from nbsglang.engine.locate import INDEX
from nbsglang.errors import ModelError, ModelNotFound, ModelRefused, UsageError
from tests.tiny import byte_tokenizer, tiny_gguf, tiny_model


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A tiny llama with its tokenizer, as save_pretrained leaves it."""
    path = tmp_path / "tiny"
    tiny_model("llama").save_pretrained(path)
    byte_tokenizer().save_pretrained(path)
    return path


def _edit(path: Path, **fields: object) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | fields))


def _pickle_only(folder: Path) -> None:
    weights = folder / "model.safetensors"
    torch.save(load_file(weights), folder / "pytorch_model.bin")
    weights.unlink()


def _sharded(folder: Path, shard: str, index: str = INDEX) -> None:
    """Leave the weights to one shard, which the index names; it must exist already when it is not safetensors."""
    weights = folder / "model.safetensors"
    weight_map = dict.fromkeys(load_file(weights), shard)
    (folder / index).write_text(json.dumps({"metadata": {}, "weight_map": weight_map}))
    weights.rename(folder / shard) if shard.endswith(".safetensors") else weights.unlink()


# ------------------------------------------------------------------------------------------------ served


def test_a_folder(folder: Path) -> None:
    told: list[tuple[str, int, int]] = []
    loaded = load(folder, device="cpu", progress=lambda *step: told.append(step))
    assert (loaded.name, loaded.owned, loaded.module.training) == ("tiny", True, False)
    for name, weight in tiny_model("llama").state_dict().items():
        assert torch.equal(loaded.module.state_dict()[name], weight), name
    text = "Tiny Wörld<|im_end|>"
    assert loaded.tokenizer.decode(loaded.tokenizer(text).input_ids) == text
    assert loaded.tokenizer.chat_template == byte_tokenizer().chat_template
    assert told == [("loading tiny", 0, 1), ("loading tiny", 1, 1)]


def test_a_folder_by_its_relative_name(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    assert load(".", device="cpu").name == "tiny"


@pytest.mark.parametrize(("given", "got"), [("auto", torch.float32), ("bfloat16", torch.bfloat16)])
def test_dtype(folder: Path, given: str, got: torch.dtype) -> None:
    module = load(folder, dtype=given, device="cpu").module
    assert {parameter.dtype for parameter in module.parameters()} == {got}


def test_auto_means_bfloat16_on_cuda_and_float32_elsewhere() -> None:
    assert torch_dtype("auto", torch.device("cuda")) is torch.bfloat16
    assert torch_dtype("auto", torch.device("cpu")) is torch.float32
    assert torch_device("auto").type == ("cuda" if torch.cuda.is_available() else "cpu")


@pytest.mark.parametrize("dtype", ["int8", "fast-ish", torch.int64])
def test_a_dtype_that_is_none(dtype: str) -> None:
    with pytest.raises(UsageError, match="float32"):
        torch_dtype(dtype, torch.device("cpu"))


def test_a_device_that_is_none() -> None:
    with pytest.raises(UsageError, match="nowhere"):
        torch_device("nowhere")


def test_a_gguf_file_is_converted_once(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tiny_gguf(tmp_path / "mine.gguf")
    direct = _direct(tmp_path / "mine.gguf", monkeypatch)
    assert not cache.exists()
    first = load(tmp_path / "mine.gguf", device="cpu")
    monkeypatch.setattr(convert, "_write", lambda *_: pytest.fail("converted again"))
    for loaded in (direct, first, load(tmp_path, device="cpu")):  # the one file of a folder
        assert loaded.name in {"mine", tmp_path.name}
        state = loaded.module.state_dict()
        assert all(torch.equal(weight, state[name]) for name, weight in first.module.state_dict().items())
        assert torch.equal(state["model.layers.1.mlp.up_proj.weight"], tiny_model().model.layers[1].mlp.up_proj.weight)
        words = loaded.tokenizer
        assert words.decode(words("it 's <|im_end|>").input_ids) == "it 's <|im_end|>"
        assert (words.bos_token, words.eos_token) == ("<|bos|>", "<|im_end|>")
        assert words.chat_template == byte_tokenizer().chat_template


def _direct(path: Path, monkeypatch: pytest.MonkeyPatch) -> Loaded:
    """As a file that is too large to convert."""
    with monkeypatch.context() as patch:
        patch.setattr("nbsglang.engine.locate._MAX_CONVERTED", 1)
        return load(path, device="cpu")


def test_another_tokenizer(folder: Path, tmp_path: Path) -> None:
    other = byte_tokenizer(chat=False)
    assert load(folder, other, device="cpu").tokenizer is other
    other.save_pretrained(tmp_path / "other")
    assert load(folder, tmp_path / "other", device="cpu").tokenizer.chat_template is None
    with pytest.raises(ModelNotFound, match="missing"):
        load(folder, str(tmp_path / "missing"), device="cpu")
    with pytest.raises(UsageError, match="tokenizer="):
        load(folder, 3, device="cpu")


def test_progress_bars_are_off_and_come_back(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    from transformers.utils import logging

    was = logging.is_progress_bar_enabled()
    load(folder, device="cpu")
    assert "Loading weights" not in capfd.readouterr().err
    assert logging.is_progress_bar_enabled() == was


# ------------------------------------------------------------------------------------------ a live module


def test_a_live_module_is_taken_as_it_is() -> None:
    module, words = tiny_model("qwen3"), byte_tokenizer()
    loaded = load(module, words)
    assert loaded.module is module
    assert loaded.tokenizer is words
    assert (loaded.name, loaded.owned) == ("Qwen3ForCausalLM", False)


def test_a_live_module_that_knows_its_folder(folder: Path) -> None:
    module = load(folder, device="cpu").module
    again = load(module)
    assert (again.name, again.owned) == ("tiny", False)
    assert again.tokenizer.vocab_size == 256


def test_a_live_module_without_a_tokenizer() -> None:
    with pytest.raises(UsageError, match="tokenizer="):
        load(tiny_model("llama"))


def test_a_live_module_from_a_place_that_is_gone() -> None:
    module = tiny_model("llama")
    module.name_or_path = "somebody/something"
    with pytest.raises(UsageError, match=r"somebody/something.*tokenizer="):
        load(module)


def test_a_live_module_is_neither_cast_nor_moved() -> None:
    module = tiny_model("llama")
    with pytest.raises(UsageError, match="bfloat16"):
        load(module, byte_tokenizer(), dtype="bfloat16")
    with pytest.raises(UsageError, match="cuda"):
        load(module, byte_tokenizer(), device="cuda")
    with pytest.raises(UsageError, match="parameters"):
        load(nn.Identity(), byte_tokenizer())


# ----------------------------------------------------------------------------------------------- refused


def test_pickled_weights_are_refused(folder: Path) -> None:
    _pickle_only(folder)
    with pytest.raises(ModelRefused, match=r"pytorch_model\.bin.*allow_pickle=True"):
        load(folder, device="cpu")
    module = load(folder, device="cpu", allow_pickle=True).module
    assert torch.equal(module.lm_head.weight, tiny_model("llama").lm_head.weight)


def test_a_pickle_beside_safetensors_is_not_read(folder: Path) -> None:
    (folder / "pytorch_model.bin").write_bytes(b"\x80\x04cos\nsystem\n.")
    for allow in (False, True):
        assert load(folder, device="cpu", allow_pickle=allow).name == "tiny"


def test_an_index_of_safetensors(folder: Path) -> None:
    _sharded(folder, "model-00001-of-00001.safetensors")
    module = load(folder, device="cpu").module
    assert torch.equal(module.lm_head.weight, tiny_model("llama").lm_head.weight)


@pytest.mark.parametrize("allow_pickle", [False, True])
@pytest.mark.parametrize("shard", ["x.bin", "x.safetensors.bin", "x.SAFETENSORS", ""])
def test_an_index_that_leads_to_pickles_is_refused(folder: Path, shard: str, allow_pickle: bool) -> None:
    torch.save(load_file(folder / "model.safetensors"), folder / (shard or "x.bin"))
    _sharded(folder, shard)
    with pytest.raises(ModelRefused, match=r"index\.json.*pickle"):
        load(folder, device="cpu", allow_pickle=allow_pickle)


@pytest.mark.parametrize("shard", ["../x.safetensors", "/x.safetensors", "sub/x.safetensors", "..\\x.safetensors"])
@pytest.mark.parametrize("index", [INDEX, "pytorch_model.bin.index.json"])
def test_an_index_that_leads_elsewhere_is_refused(folder: Path, shard: str, index: str) -> None:
    (folder / index).write_text(json.dumps({"weight_map": {"lm_head.weight": shard}}))
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    with pytest.raises(ModelRefused, match="beside it"):
        load(folder, device="cpu", allow_pickle=True)


@pytest.mark.parametrize("broken", [{}, {"weight_map": []}, {"weight_map": {}}, {"weight_map": {"a": 1}}])
def test_an_index_without_a_weight_map(folder: Path, broken: dict[str, object]) -> None:
    (folder / INDEX).write_text(json.dumps(broken))
    (folder / "model.safetensors").unlink()
    with pytest.raises(ModelError, match="weight_map"):
        load(folder, device="cpu")


def test_an_index_that_nests_too_deep(folder: Path) -> None:
    (folder / INDEX).write_text("[" * 100_000)
    with pytest.raises(ModelError, match=r"index\.json cannot be read"):
        load(folder, device="cpu")


def test_a_config_that_leads_to_pickles_is_refused(folder: Path) -> None:
    torch.save(load_file(folder / "model.safetensors"), folder / "x.bin")
    (folder / "x.safetensors.index.json").write_text(
        json.dumps({"metadata": {}, "weight_map": dict.fromkeys(load_file(folder / "model.safetensors"), "x.bin")})
    )
    _edit(folder / "config.json", transformers_weights="x.safetensors.index.json")
    with pytest.raises(ModelRefused, match="transformers_weights"):
        load(folder, device="cpu")
    hidden = {"transformers_weights": "harmless"}
    _edit(folder / "config.json", transformers_weights=None, attribute_map=hidden, harmless="x.safetensors.index.json")
    with pytest.raises(ModelRefused, match="attribute_map"):
        load(folder, device="cpu")


@pytest.mark.parametrize("shard", ["x.bin", "../x.safetensors"])
def test_a_hub_index_is_checked_before_its_files_are_fetched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shard: str
) -> None:
    def snapshot(model: str, files: list[str]) -> str:
        asked.append(files)
        return str(tmp_path)

    asked: list[list[str]] = []
    (tmp_path / INDEX).write_text(json.dumps({"weight_map": {"a": shard}}))
    monkeypatch.setattr("nbsglang.engine.locate._snapshot", snapshot)
    with pytest.raises(ModelRefused, match=r"index\.json"):
        load("somebody/something", device="cpu")
    assert len(asked) == 1
    (tmp_path / INDEX).write_text("{}")
    with pytest.raises(ModelError, match="weight_map"):
        load("somebody/something", device="cpu")


def test_a_hostile_pickle_does_not_run(folder: Path, tmp_path: Path) -> None:
    class Trap:
        def __reduce__(self) -> object:
            return (os.mkdir, (str(tmp_path / "sprung"),))

    _pickle_only(folder)
    torch.save({"lm_head.weight": Trap()}, folder / "pytorch_model.bin")
    with pytest.raises(ModelError):
        load(folder, device="cpu", allow_pickle=True)
    assert not (tmp_path / "sprung").exists()


def test_code_of_a_repository_is_refused(folder: Path, tmp_path: Path) -> None:
    (folder / "modeling.py").write_text(f"import os; os.mkdir({str(tmp_path / 'sprung')!r})")
    auto_map = {"AutoConfig": "modeling.Config", "AutoModelForCausalLM": "modeling.Model"}
    _edit(folder / "config.json", model_type="homemade", auto_map=auto_map)
    with pytest.raises(ModelRefused, match="auto_map"):
        load(folder, device="cpu")
    assert not (tmp_path / "sprung").exists()


def test_code_of_a_repository_is_not_run_when_transformers_has_its_own(folder: Path, tmp_path: Path) -> None:
    (folder / "modeling.py").write_text(f"import os; os.mkdir({str(tmp_path / 'sprung')!r})")
    _edit(folder / "config.json", auto_map={"AutoModelForCausalLM": "modeling.Model"})
    assert type(load(folder, device="cpu").module).__name__ == "LlamaForCausalLM"
    assert not (tmp_path / "sprung").exists()


def test_code_of_a_tokenizer_is_refused(folder: Path, tmp_path: Path) -> None:
    (folder / "words.py").write_text(f"import os; os.mkdir({str(tmp_path / 'sprung')!r})")
    _edit(
        folder / "tokenizer_config.json", tokenizer_class="Homemade", auto_map={"AutoTokenizer": ["words.Words", None]}
    )
    with pytest.raises(ModelError, match="tokenizer"):
        load(folder, device="cpu")
    assert not (tmp_path / "sprung").exists()


def test_weights_that_are_missing_are_not_made_up(folder: Path) -> None:
    weights = load_file(folder / "model.safetensors")
    del weights["model.layers.1.mlp.up_proj.weight"]
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(ModelRefused, match=r"layers\.1\.mlp\.up_proj"):
        load(folder, device="cpu")


def test_a_broken_weights_file(folder: Path) -> None:
    whole = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ModelError, match="tiny cannot be loaded"):
        load(folder, device="cpu")


def test_a_broken_config(folder: Path) -> None:
    (folder / "config.json").write_text("{")
    with pytest.raises(ModelError, match=r"config\.json"):
        load(folder, device="cpu")


def test_a_broken_gguf_file(tmp_path: Path, cache: Path) -> None:
    (tmp_path / "x.gguf").write_bytes(b"GGUF, but no more")
    with pytest.raises(ModelError, match=r"x\.gguf"):
        load(tmp_path / "x.gguf", device="cpu")
    assert [path.name for path in cache.iterdir()] == [".lock"]


def test_a_single_file_of_another_kind(folder: Path) -> None:
    with pytest.raises(ModelRefused, match="folder"):
        load(folder / "model.safetensors", device="cpu")


# --------------------------------------------------------------------------------------------- not found


@pytest.mark.parametrize(
    ("remove", "add", "why"),
    [
        (["model.safetensors"], [], r"model\.safetensors is missing"),
        (["config.json"], [], r"config\.json is missing"),
        (["config.json"], ["adapter_config.json"], "adapter"),
        (["config.json"], ["a.gguf", "b.gguf"], r"a\.gguf, b\.gguf"),
    ],
)
def test_a_folder_without_a_model(folder: Path, remove: list[str], add: list[str], why: str) -> None:
    for name in remove:
        (folder / name).unlink()
    for name in add:
        (folder / name).write_text("{}")
    with pytest.raises(ModelNotFound, match=why):
        load(folder, device="cpu")


def test_a_folder_without_a_tokenizer(folder: Path) -> None:
    for path in folder.glob("tokenizer*"):
        path.unlink()
    with pytest.raises(ModelError, match="tokenizer="):
        load(folder, device="cpu")
    assert load(folder, byte_tokenizer(), device="cpu").name == "tiny"


@pytest.mark.parametrize("name", ["smolm2", "SmolLM2", "tinny", "./tiny2", "no/such/place", "x.gguf", ""])
def test_an_unknown_name(folder: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder.parent)
    with pytest.raises((ModelNotFound, UsageError)) as caught:
        load(name, device="cpu")
    near = {"smolm2": "smollm2", "SmolLM2": "smollm2", "tinny": "tiny", "./tiny2": "tiny"}.get(name)
    assert near is None or f"Did you mean '{near}'" in str(caught.value)


def test_a_hub_id_without_the_hub_is_quick_and_says_what_helps() -> None:
    begin = time.monotonic()
    with pytest.raises(ModelNotFound, match=r"somebody/something.*HF_HUB_OFFLINE.*smollm2"):
        load("somebody/something", device="cpu")  # conftest.py sets HF_HUB_OFFLINE
    assert time.monotonic() - begin < 5


def test_a_hub_id_in_the_hubs_cache(folder: Path, tmp_path: Path) -> None:
    repository = tmp_path / "hub" / "models--somebody--something"
    snapshot = repository / "snapshots" / ("0" * 40)
    snapshot.parent.mkdir(parents=True)
    folder.rename(snapshot)
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text("0" * 40)
    code = (
        "from nbsglang.engine.load import load\nloaded = load('somebody/something', device='cpu')\n"
        "print(loaded.name, type(loaded.module).__name__, loaded.owned)"
    )
    # Its own process, since huggingface_hub reads these variables once.
    environment = os.environ | {"HF_HUB_CACHE": str(tmp_path / "hub"), "HF_HUB_OFFLINE": "1"}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, env=environment, timeout=120
    )
    assert done.stdout.split() == ["somebody/something", "LlamaForCausalLM", "True"], done.stderr


# -------------------------------------------------------------------------------------- the default model


@pytest.mark.smollm2
def test_the_default_model_loads_fast(smollm2_folder: Path) -> None:
    code = (
        "import time, torch, transformers.models.llama.modeling_llama\nfrom nbsglang.engine.load import load\n"
        "begin = time.monotonic()\nloaded = load('smollm2', device='cpu')\nprint(time.monotonic() - begin)"
    )
    limit = 3 * 0.5  # three times what it takes
    for _ in range(3):  # on a machine that is busy with something else
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        if (seconds := float(done.stdout)) < limit:
            break
    assert seconds < limit


@pytest.mark.smollm2
def test_the_converted_copy_holds_the_dequantised_values(smollm2_folder: Path) -> None:
    import gguf

    from nbsglang.engine.fetch import GGUF

    kept = gguf.GGUFReader(smollm2_folder.parent.parent / GGUF)
    name, ours = "blk.7.ffn_up.weight", "model.layers.7.mlp.up_proj.weight"
    tensor = next(tensor for tensor in kept.tensors if tensor.name == name)
    exact = torch.from_numpy(gguf.dequantize(tensor.data, tensor.tensor_type))
    assert torch.equal(load("smollm2", device="cpu").module.state_dict()[ours], exact)
