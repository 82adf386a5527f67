"""Tiny checkpoints with random weights, real architectures and a tokenizer trained on the spot, written to disk the
way a published checkpoint is. They know nothing, but everything around a real one runs the same."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from research.encoders.colpali import engine
from research.encoders.libraries import quiet

FAMILIES = ("ColIdefics3", "ColModernVBert", "ColQwen2", "ColPali")

IMAGE = 64  # pixels a side of one tile
PATCH = 16
SHUFFLE = 2  # patches a side that become one vector
LONGEST = 256  # pixels of the longest side before it is cut into tiles: 4 × 3 of them for a portrait page
VECTORS_PER_TILE = (IMAGE // PATCH) ** 2 // SHUFFLE**2
MOST_TILES = 6

_TEXT = (
    "Describe the image. User: Assistant: How many weeks of parental leave does the handbook give? "
    "What caused the crisis of 2008? A table of revenue by region, a chart of order intake, a letter that was scanned."
)
_SPECIAL = (
    "<pad>",
    "<unk>",
    "<bos>",
    "<eos>",
    "<|im_start|>",
    "<|begin_of_text|>",
    "<image>",
    "<fake_token_around_image>",
    "<global-img>",
    "<end_of_utterance>",
    "<|im_end|>",
    "<|vision_start|>",
    "<|vision_end|>",
    "<|image_pad|>",
    "<|video_pad|>",
    "<|endoftext|>",
    *(f"<row_{row}_col_{col}>" for row in range(1, MOST_TILES + 1) for col in range(1, MOST_TILES + 1)),
)


def make_tiny(folder: Path, family: str, *, seed: int = 0) -> Path:
    """Write a checkpoint of one of FAMILIES into `folder` and return it."""
    models = engine()
    import torch

    folder.mkdir(parents=True, exist_ok=True)
    tokenizer = _tokenizer()
    config = _CONFIGS[family](tokenizer)
    with quiet(), torch.random.fork_rng():
        torch.manual_seed(seed)
        getattr(models, family)(config).save_pretrained(folder)
        _processor(getattr(models, f"{family}Processor"), family, tokenizer).save_pretrained(folder)
    return folder


def make_tiny_adapter(folder: Path, base: Path, *, seed: int = 1, processor: bool = False) -> Path:
    """Write a LoRA adapter for a checkpoint of make_tiny into `folder`: like most published ones, with no config.json
    of its own and, unless asked for, no processor files."""
    models = engine()
    import torch
    from peft import LoraConfig, get_peft_model

    family = _architecture(base)
    with quiet(), torch.random.fork_rng():
        torch.manual_seed(seed)
        model = getattr(models, family).from_pretrained(base)
        # Starting from zero, as training does, an adapter would change nothing.
        targets = r".*text_model.*(q_proj|Wqkv)|custom_text_proj|linear"
        config = LoraConfig(r=4, lora_alpha=8, target_modules=targets, init_lora_weights=False)
        get_peft_model(model, config).save_pretrained(folder)
        if processor:
            getattr(models, f"{family}Processor").from_pretrained(base).save_pretrained(folder)
    return folder


def _architecture(folder: Path) -> str:
    return str(json.loads((folder / "config.json").read_text())["architectures"][0])


def _tokenizer() -> Any:
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    raw = Tokenizer(models.BPE(unk_token="<unk>"))
    raw.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    raw.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=400,
        special_tokens=list(_SPECIAL),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    raw.train_from_iterator([_TEXT], trainer)
    return PreTrainedTokenizerFast(
        tokenizer_object=raw, pad_token="<pad>", unk_token="<unk>", bos_token="<bos>", eos_token="<eos>"
    )


def _processor(kind: Any, family: str, tokenizer: Any) -> Any:
    from transformers import Idefics3ImageProcessor, Qwen2VLImageProcessor, Qwen2VLVideoProcessor, SiglipImageProcessor

    if family == "ColQwen2":
        area = PATCH * PATCH
        size = {"shortest_edge": 16 * area, "longest_edge": 400 * area}
        images = Qwen2VLImageProcessor(patch_size=PATCH, merge_size=SHUFFLE, size=size)
        return kind(images, tokenizer, Qwen2VLVideoProcessor())
    if family == "ColPali":
        squares = SiglipImageProcessor(size={"height": IMAGE, "width": IMAGE})
        squares.image_seq_length = (IMAGE // PATCH) ** 2
        return kind(squares, tokenizer)
    tiles = Idefics3ImageProcessor(
        size={"longest_edge": LONGEST}, max_image_size={"longest_edge": IMAGE}, do_image_splitting=True
    )
    return kind(tiles, tokenizer, image_seq_len=VECTORS_PER_TILE)


def _vision() -> dict[str, int]:
    return {
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "image_size": IMAGE,
        "patch_size": PATCH,
    }


def _text(tokenizer: Any) -> dict[str, Any]:
    return {
        "vocab_size": len(tokenizer),
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "num_key_value_heads": 2,
        "pad_token_id": tokenizer.pad_token_id,
        "bos_token_id": tokenizer.bos_token_id,
        "eos_token_id": tokenizer.eos_token_id,
    }


def _idefics3(tokenizer: Any) -> Any:
    from transformers import Idefics3Config, LlamaConfig

    return Idefics3Config(
        image_token_id=tokenizer.convert_tokens_to_ids("<image>"),
        vision_config=_vision(),
        text_config=LlamaConfig(**_text(tokenizer)),
        scale_factor=SHUFFLE,
        pad_token_id=tokenizer.pad_token_id,
    )


def _modernvbert(tokenizer: Any) -> Any:
    from transformers import ModernVBertConfig

    text = _text(tokenizer)
    del text["num_key_value_heads"]
    ends = {"cls_token_id": tokenizer.bos_token_id, "sep_token_id": tokenizer.eos_token_id}
    return ModernVBertConfig(
        image_token_id=tokenizer.convert_tokens_to_ids("<image>"),
        vision_config={"model_type": "siglip_vision_model", **_vision()},
        text_config={"model_type": "modernbert", **text, **ends},
        pixel_shuffle_factor=SHUFFLE,
    )


def _qwen2(tokenizer: Any) -> Any:
    from transformers import Qwen2VLConfig

    vision = {"depth": 2, "embed_dim": 32, "hidden_size": 32, "num_heads": 2, "mlp_ratio": 2}
    tokens = {
        "image_token_id": "<|image_pad|>",
        "video_token_id": "<|video_pad|>",
        "vision_start_token_id": "<|vision_start|>",
        "vision_end_token_id": "<|vision_end|>",
    }
    rope = {"type": "mrope", "rope_type": "default", "mrope_section": [2, 3, 3]}
    return Qwen2VLConfig(
        text_config={**_text(tokenizer), "rope_scaling": rope},
        vision_config={**vision, "patch_size": PATCH, "spatial_merge_size": SHUFFLE, "temporal_patch_size": 2},
        **{name: tokenizer.convert_tokens_to_ids(token) for name, token in tokens.items()},
    )


def _paligemma(tokenizer: Any) -> Any:
    from transformers import PaliGemmaConfig

    return PaliGemmaConfig(
        text_config={"model_type": "gemma", **_text(tokenizer), "head_dim": 16},
        vision_config={"model_type": "siglip_vision_model", **_vision(), "projection_dim": 32},
        image_token_index=tokenizer.convert_tokens_to_ids("<image>"),
        projection_dim=32,
        hidden_size=32,
    )


_CONFIGS = {"ColIdefics3": _idefics3, "ColModernVBert": _modernvbert, "ColQwen2": _qwen2, "ColPali": _paligemma}
