"""Models that would run code, or reach beyond their folder, when they are loaded: none does, whoever names it."""

from __future__ import annotations

import json
import pickle
import runpy
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from research.encoders.base import identify_text_encoder, load_text_encoder
from research.encoders.colpali import identify, load_visual_encoder
from research.errors import EncoderUnavailable
from tests.conftest import Tiny
from tests.research.encoders.tiny_text import edit_json

# Loading these warns, and pytest would make that the error that refuses them.
pytestmark = pytest.mark.filterwarnings("ignore")


class _Pwn:
    """A pickle that writes a file when it is opened."""

    def __init__(self, mark: Path) -> None:
        self._mark = mark

    def __reduce__(self) -> tuple[object, tuple[str, str]]:
        return open, (str(self._mark), "w")


def evil_code(folder: Path, name: str = "evil.py") -> None:
    """A Python file that leaves a mark beside the folder when it is imported."""
    (folder / name).write_text(f"open({str(mark_of(folder))!r}, 'w').close()\nclass Pwn:\n    load = print\n")


def evil_pickle(folder: Path, name: str) -> None:
    (folder / name).write_bytes(pickle.dumps(_Pwn(mark_of(folder))))


def mark_of(folder: Path) -> Path:
    return next(parent for parent in (folder, *folder.parents) if parent.name == "model").with_name("PWNED")


def foreign_module(folder: Path) -> None:
    evil_code(folder)
    modules = json.loads((folder / "modules.json").read_text())
    (folder / "modules.json").write_text(json.dumps([*modules, {**modules[0], "idx": 9, "type": "evil.Pwn"}]))


def library_as_module(folder: Path) -> None:
    """No class, but what a file of the library imports, whose `load` opens pickles."""
    modules = json.loads((folder / "modules.json").read_text())
    modules[0] = {**modules[0], "path": "evil.pkl", "type": "sentence_transformers.base.model.pickle"}
    (folder / "modules.json").write_text(json.dumps(modules))
    evil_pickle(folder, "evil.pkl")


def foreign_route(folder: Path) -> None:
    evil_code(folder)
    kind = "sentence_transformers.base.modules.router.Router"
    (folder / "modules.json").write_text(json.dumps([{"idx": 0, "name": "0", "path": "", "type": kind}]))
    structure = {"structure": {"query": ["q"]}, "parameters": {}}
    (folder / "router_config.json").write_text(json.dumps({"types": {"q": "evil.Pwn"}, **structure}))


def foreign_activation(folder: Path) -> None:
    evil_code(folder)
    edit_json(folder / "2_Dense" / "config.json", activation_function="evil.Pwn")


def module_elsewhere(folder: Path) -> None:
    modules = json.loads((folder / "modules.json").read_text())
    (folder / "modules.json").write_text(json.dumps([{**module, "path": "../elsewhere"} for module in modules]))


def own_model_code(folder: Path) -> None:
    evil_code(folder, "modeling_evil.py")
    edit_json(folder / "config.json", model_type="evil", auto_map={"AutoConfig": "modeling_evil.Pwn"})


def pickled(folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    evil_pickle(folder, "pytorch_model.bin")


def pickled_in_parts(folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    evil_pickle(folder, "pytorch_model-00001-of-00001.bin")
    (folder / "pytorch_model.bin.index.json").write_text(
        json.dumps({"metadata": {}, "weight_map": {"x": "pytorch_model-00001-of-00001.bin"}})
    )


def pickled_layer(folder: Path) -> None:
    (folder / "2_Dense" / "model.safetensors").unlink()
    evil_pickle(folder / "2_Dense", "pytorch_model.bin")


def pickle_in_a_list_of_safe_ones(folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    evil_pickle(folder, "evil.bin")
    (folder / "model.safetensors.index.json").write_text(
        json.dumps({"metadata": {}, "weight_map": {"embeddings.word_embeddings.weight": "evil.bin"}})
    )


def keyword(folder: Path, **values: object) -> None:
    edit_json(folder / "sentence_bert_config.json", **values)


def kernels(folder: Path) -> None:
    keyword(folder, model_kwargs={"attn_implementation": "evil/kernel"})


def kernels_in_the_config(folder: Path) -> None:
    edit_json(folder / "config.json", _attn_implementation="evil/kernel")


def every_kernel(folder: Path) -> None:
    keyword(folder, model_args={"allow_all_kernels": True})


def trusting(folder: Path) -> None:
    keyword(folder, processor_kwargs={"trust_remote_code": True})


def writing(folder: Path) -> None:
    keyword(folder, model_kwargs={"offload_folder": "out"})


def tokenizer_elsewhere(folder: Path) -> None:
    keyword(folder, tokenizer_name_or_path="evil/tokenizer")


def pickled_adapter(folder: Path) -> None:
    edit_json(folder / "adapter_config.json", peft_type="LORA", base_model_name_or_path=str(folder))
    evil_pickle(folder, "adapter_model.bin")


@pytest.mark.parametrize("trap", ["evil.py", "evil.pkl"])
def test_the_traps_of_this_file_are_armed(tmp_path: Path, trap: str) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    if trap == "evil.py":
        evil_code(folder)
        runpy.run_path(str(folder / trap))
    else:
        evil_pickle(folder, trap)
        pickle.loads((folder / trap).read_bytes()).close()
    assert mark_of(folder).exists()


TEXT: list[tuple[Callable[[Path], None], str]] = [
    (foreign_module, "names the class 'evil.Pwn'"),
    (library_as_module, "names the class 'sentence_transformers.base.model.pickle'"),
    (foreign_route, "names the class 'evil.Pwn'"),
    (foreign_activation, "names the class 'evil.Pwn'"),
    (module_elsewhere, "leads out of the folder"),
    (own_model_code, "custom code"),
    (pickled, "pickled weights"),
    (pickled_in_parts, "pickled weights"),
    (pickled_layer, "pickled weights"),
    (pickle_in_a_list_of_safe_ones, "names evil.bin"),
    (kernels, "sets model_kwargs.attn_implementation"),
    (kernels_in_the_config, "asks for compute kernels from elsewhere"),
    (every_kernel, "sets model_args.allow_all_kernels"),
    (trusting, "sets trust_remote_code"),
    (writing, "sets model_kwargs.offload_folder"),
    (tokenizer_elsewhere, "takes its tokenizer from elsewhere"),
    (pickled_adapter, "pickled weights"),
]


@pytest.mark.parametrize(("plant", "words"), TEXT, ids=[plant.__name__ for plant, _ in TEXT])
def test_a_text_model_that_asks_for_more_than_numbers_is_refused(
    tiny_text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, plant: Callable[[Path], None], words: str
) -> None:
    folder = Path(shutil.copytree(tiny_text, tmp_path / "model"))
    plant(folder)
    monkeypatch.chdir(folder)
    with pytest.raises(EncoderUnavailable, match=words):
        load_text_encoder(str(folder))
    if words != "custom code":  # transformers' own refusal, which comes with loading
        with pytest.raises(EncoderUnavailable, match=words):
            identify_text_encoder(".")
    assert not mark_of(folder).exists()


def test_code_beside_a_model_that_needs_none_does_not_run(tiny_text: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(tiny_text, tmp_path / "model"))
    for name in ("evil.py", "modeling_evil.py", "tokenizer.py", "tokenization_evil.py"):
        evil_code(folder, name)
    evil_pickle(folder, "pytorch_model.bin")  # beside the safetensors, as many published ones have it
    evil_pickle(folder, "training_args.bin")
    (folder / "onnx").mkdir()
    (folder / "onnx" / "model.onnx").write_bytes(b"nothing")
    (folder / "chat_template.jinja").write_text("{{ ().__class__.__mro__[1].__subclasses__() }}")
    edit_json(folder / "config.json", auto_map={"AutoConfig": "modeling_evil.Pwn", "AutoModel": "modeling_evil.Pwn"})
    encoder = load_text_encoder(str(folder))
    assert encoder.embed(["boats"]).shape == (1, encoder.dim)
    assert not mark_of(folder).exists()


def test_a_tokenizer_of_its_own_does_not_run(tiny_text: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(tiny_text, tmp_path / "model"))
    evil_code(folder, "tokenization_evil.py")
    own = {"AutoTokenizer": ["tokenization_evil.Pwn", "tokenization_evil.Pwn"]}
    edit_json(folder / "tokenizer_config.json", tokenizer_class="EvilTokenizer", auto_map=own)
    assert load_text_encoder(str(folder)).count_tokens("boats") > 0  # by tokenizer.json, which is data
    assert not mark_of(folder).exists()


def megatron(folder: Path) -> None:
    edit_json(folder / "adapter_config.json", megatron_config={"x": 1}, megatron_core="evil")


def of_many(folder: Path) -> None:
    edit_json(folder / "adapter_config.json", peft_type="XLORA", adapters={"0": "/elsewhere"})


def adapter_as_pickle(folder: Path) -> None:
    (folder / "adapter_model.safetensors").unlink()
    evil_pickle(folder, "adapter_model.bin")


VISUAL: list[tuple[str, Callable[[Path], None], str]] = [
    ("ColIdefics3", pickled, "pickled weights"),
    ("ColIdefics3", pickled_in_parts, "pickled weights"),
    ("ColIdefics3", pickle_in_a_list_of_safe_ones, "names evil.bin"),
    ("ColIdefics3", kernels_in_the_config, "asks for compute kernels from elsewhere"),
    ("ColIdefics3+adapter", adapter_as_pickle, "pickled weights"),
    ("ColIdefics3+adapter", megatron, "sets megatron_config"),
    ("ColIdefics3+adapter", of_many, "is an adapter of the kind 'XLORA'"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "plant", "words"), VISUAL, ids=[f"{n}-{p.__name__}" for n, p, _ in VISUAL])
def test_a_visual_model_that_asks_for_more_than_numbers_is_refused(
    tiny: Tiny, tmp_path: Path, name: str, plant: Callable[[Path], None], words: str
) -> None:
    folder = Path(shutil.copytree(tiny(name), tmp_path / "model"))
    plant(folder)
    for use in (load_visual_encoder, identify):
        with pytest.raises(EncoderUnavailable, match=words):
            use(f"colpali:{folder}")
    assert not mark_of(folder).exists()


@pytest.mark.slow
def test_an_adapters_base_is_looked_at_too(tiny: Tiny, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    base = Path(shutil.copytree(tiny("ColIdefics3"), tmp_path / "model"))
    adapter = Path(shutil.copytree(tiny("ColIdefics3+adapter"), tmp_path / "adapter"))
    edit_json(adapter / "adapter_config.json", base_model_name_or_path=str(base))
    pickled(base)
    with pytest.raises(EncoderUnavailable, match="pickled weights"):
        load_visual_encoder(f"colpali:{adapter}")
    # A folder planted where the user stands would be taken by the libraries for the hub's model of that name.
    edit_json(adapter / "adapter_config.json", base_model_name_or_path="some/base")
    shutil.copytree(tiny("ColIdefics3"), tmp_path / "here" / "some" / "base")
    monkeypatch.chdir(tmp_path / "here")
    with pytest.raises(EncoderUnavailable, match="a folder of that name lies where you stand"):
        load_visual_encoder(f"colpali:{adapter}")
    assert not mark_of(base).exists()


@pytest.mark.slow
def test_code_beside_a_checkpoint_does_not_run(tiny: Tiny, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(tiny("ColIdefics3"), tmp_path / "model"))
    for name in ("modeling_evil.py", "processing_evil.py", "tokenization_evil.py"):
        evil_code(folder, name)
    evil_pickle(folder, "pytorch_model.bin")
    edit_json(folder / "config.json", auto_map={"AutoConfig": "modeling_evil.Pwn", "AutoModel": "modeling_evil.Pwn"})
    for name, kind in (
        ("processor_config.json", {"AutoProcessor": "processing_evil.Pwn"}),
        ("preprocessor_config.json", {"AutoImageProcessor": "processing_evil.Pwn"}),
        ("tokenizer_config.json", {"AutoTokenizer": ["tokenization_evil.Pwn", "tokenization_evil.Pwn"]}),
    ):
        edit_json(folder / name, auto_map=kind)
    assert load_visual_encoder(f"colpali:{folder}").dim == 128
    assert not mark_of(folder).exists()
