"""Late interaction over page images with any checkpoint that colpali-engine loads: names, devices, the encoder itself.

Nothing heavy is imported before something is loaded.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from research.encoders.checkpoints import Name
from research.encoders.colpali_model import find_checkpoint, load_model, load_processor
from research.encoders.libraries import DEFAULT_CHECKPOINT, allow_torchvision, installed, missing_packages, quiet
from research.encoders.maxsim import grid_boxes, square_boxes, stretch, tile_boxes
from research.errors import CtxError, EncoderUnavailable, UsageError
from research.records import WHOLE_PAGE, Box
from research.settings import check

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from PIL.Image import Image

KIND = "colpali"
LARGEST_BATCH = 16
SHORTEST_SIDE = 32  # pixels; models fail or see nothing below
LONGEST_RATIO = 30  # ColQwen's processor refuses 200, and tiles of a ribbon are mostly empty

INSTALL = "pip install 'ctx-research[visual]'"


@dataclass(frozen=True, slots=True)
class PageVectors:
    """What an encoder saw on one page: `vectors` (n_vectors, dim) with unit rows, and where each one looked.
    A vector with no place of its own (the prompt's words) has the whole page as its box."""

    vectors: NDArray[np.float32]
    boxes: tuple[Box, ...]


class VisualEncoder(Protocol):
    """Turns page images and questions into vectors that are compared by MaxSim."""

    @property
    def name(self) -> str:
        """The identity an index remembers: kind, checkpoint and all that changes vectors. Two are never mixed."""
        ...

    @property
    def dim(self) -> int: ...

    def embed_pages(self, images: Sequence[Path]) -> list[PageVectors]:
        """One PageVectors an image, in order. An image that cannot be read raises CtxError."""
        ...

    def embed_question(self, text: str) -> NDArray[np.float32]:
        """A question's vectors, (n_tokens, dim)."""
        ...


def identify(wanted: str) -> str:
    """The name an index would remember a model by, told from its files without loading it: "colpali:CHECKPOINT", or
    just CHECKPOINT. A hub name that is not on this machine is fetched, for the user has asked for it by name."""
    parts = _parse(wanted)
    if not installed():
        engine()  # says which packages are missing, and how to get them
    return _full_name(find_checkpoint(parts.model, typed=True).name, parts)


def checkpoint_of(name: str) -> str:
    """The hub name or folder that a name means."""
    return _parse(name).model


def load_visual_encoder(name: str, *, device: str = "auto") -> VisualEncoder:
    """Load the encoder of "colpali", "colpali:CHECKPOINT" or the full name an index remembers. It must be on this
    machine: nothing is fetched. A folder whose weights changed since is refused: its vectors would not fit the
    index."""
    parts = _parse(name)
    encoder = ColpaliEncoder(parts, device)
    if parts.mark and encoder.name != name:
        raise EncoderUnavailable(
            f"the checkpoint {parts.model} is not the one that filled this index: its weights have changed",
            hint=f"ctx ingest PATH --visual {shlex.quote(parts.model)}",
        )
    return encoder


def _parse(name: str) -> Name:
    """`colpali` stands for the default checkpoint, also with an ending."""
    if name == KIND or name.startswith(f"{KIND}+"):
        name = f"{KIND}:{DEFAULT_CHECKPOINT}{name.removeprefix(KIND)}"
    parts = Name.of(name if name.partition(":")[0] == KIND else f"{KIND}:{name}")
    if parts.kind != KIND:
        raise UsageError(f"no visual encoder is called {name!r}", hint=f"{KIND}:HUB/NAME or {KIND}:FOLDER")
    return parts


def _full_name(checkpoint: str, parts: Name) -> str:
    """Return the identity an index remembers."""
    return f"{KIND}:{checkpoint}{'+int8' if parts.int8 else ''}{f'+pool{parts.pool}' if parts.pool > 1 else ''}"


class ColpaliEncoder:
    """Loads at once, so that a wrong checkpoint fails before any document is read, and from this machine's files only.

    `+pool3` behind the name keeps a third of the vectors; `+int8` quantises on the CPU. Both change vectors.
    """

    def __init__(self, parts: Name, device: str) -> None:
        models = engine()
        found = find_checkpoint(parts.model)
        self._device = _choose_device("cpu" if parts.int8 and device == "auto" else device)
        if parts.int8 and self._device != "cpu":
            raise UsageError(f"int8 is for the CPU, not for {self._device}")
        self._dtype = choose_dtype(self._device)
        with quiet():
            self._model = load_model(models, found, self._dtype, int8=parts.int8).to(self._device)
            self._processor = load_processor(models, found)
        self._layout = found.family.layout
        self._pool_factor = parts.pool
        self._batch_size: int | None = None  # until the first page has told what it takes
        self._special = _special_tokens(self._processor)
        self.dim = int(self._model.dim)
        self.name = _full_name(found.name, parts)

    def embed_pages(self, images: Sequence[Path]) -> list[PageVectors]:
        """Vectors of page images, (n_vectors, dim) each: all the model's own score uses, prompt words included."""
        pages: list[PageVectors] = []
        while len(pages) < len(images):
            size = self._batch_size or 1
            pages += self._embed(list(images[len(pages) : len(pages) + size]))
            if self._batch_size is None:
                # As many as fit the accelerator's memory, by what the first one took. A CPU gains nothing.
                free, used = _free_memory(self._device)
                self._batch_size = max(1, min(LARGEST_BATCH, int(0.7 * free / used))) if used else 1
        return pages

    def embed_question(self, text: str) -> NDArray[np.float32]:
        """A question's vectors, (n_tokens, dim): its words and the model's own augmentation tokens."""
        for token in self._special:
            text = text.replace(token, " ")  # a question is words, never a control token such as <image>
        with quiet():
            batch = self._processor.process_queries(texts=[text])
            output = self._forward(batch)
        return _rows(output[0], batch["attention_mask"][0])[0]

    def _embed(self, paths: list[Path]) -> list[PageVectors]:
        canvases = [_open(path) for path in paths]
        try:
            with quiet():
                batch = self._processor.process_images([image for image, _, _ in canvases])
                output = self._forward(batch)
        except (RuntimeError, ValueError) as error:  # out of memory is a RuntimeError
            if len(paths) > 1:
                self._batch_size = middle = len(paths) // 2
                return self._embed(paths[:middle]) + self._embed(paths[middle:])
            reason = str(error).strip().partition("\n")[0]
            raise CtxError(f"the visual encoder failed on {paths[0].name}: {reason}") from error
        return [self._page(batch, output, row, wide, high) for row, (_, wide, high) in enumerate(canvases)]

    def _forward(self, batch: Any) -> Any:
        import torch

        moved = {
            key: value.to(self._device, self._dtype if value.is_floating_point() else None)
            for key, value in batch.items()
            if isinstance(value, torch.Tensor)
        }
        with torch.inference_mode():
            return self._model(**moved)

    def _page(self, batch: Any, output: Any, row: int, wide: float, high: float) -> PageVectors:
        vectors, kept = _rows(output[row], batch["attention_mask"][row])
        every = self._boxes(batch, row)
        found = [stretch(every[index], wide, high) for index in kept]
        if self._pool_factor > 1 and len(vectors) > 1:
            vectors, found = _pool(vectors, found, self._pool_factor)
        return PageVectors(vectors, tuple(found))

    def _boxes(self, batch: Any, row: int) -> list[Box]:
        """A box for every token of a page, padding included."""
        ids: list[int] = batch["input_ids"][row].tolist()
        image_token = self._image_token()
        is_image = [token == image_token for token in ids]
        if self._layout == "tiles":
            return tile_boxes(ids, is_image, self._processor.tokenizer.decode)
        if self._layout == "grid" and "image_grid_thw" in batch:
            _, rows, cols = batch["image_grid_thw"][row].tolist()
            merged = int(self._processor.image_processor.merge_size)
            return grid_boxes(is_image, rows // merged, cols // merged)
        return square_boxes(is_image)

    def _image_token(self) -> int | None:
        config, name = self._model.config, "image_token_id"
        holders = ((self._processor, name), (config, name), (config, "image_token_index"))
        return next((value for each in holders if isinstance(value := getattr(*each, None), int)), None)


def _rows(output: Any, mask: Any) -> tuple[NDArray[np.float32], list[int]]:
    """The unmasked, non-zero rows of a model's output with unit length, and their positions."""
    import numpy as np

    vectors: NDArray[np.float32] = output.float().cpu().numpy()
    norms = np.linalg.norm(vectors, axis=1)
    kept = np.flatnonzero((mask.cpu().numpy() > 0) & (norms > 0) & np.isfinite(norms))
    return np.ascontiguousarray(vectors[kept] / norms[kept, None]), kept.tolist()


def _pool(vectors: NDArray[np.float32], found: list[Box], factor: int) -> tuple[NDArray[np.float32], list[Box]]:
    """Vectors that say nearly the same merged into their mean, with the box of the one most like it: the members of
    a group may lie all over the page, and a box around them all would say nothing."""
    import torch
    from colpali_engine.compression.token_pooling import HierarchicalTokenPooler

    with quiet():
        pooled = HierarchicalTokenPooler().pool_embeddings(
            [torch.from_numpy(vectors)], return_dict=True, pool_factor=factor
        )
    means: NDArray[np.float32] = pooled.pooled_embeddings[0].numpy()
    groups = [indices[0].tolist() for indices in pooled.cluster_id_to_indices[0].values() if len(indices[0])]
    return means, [_place(mean, group, vectors, found) for mean, group in zip(means, groups, strict=True)]


def _place(mean: NDArray[np.float32], group: list[int], vectors: NDArray[np.float32], found: list[Box]) -> Box:
    placed = [index for index in group if found[index] != WHOLE_PAGE]
    return found[placed[int((vectors[placed] @ mean).argmax())]] if placed else WHOLE_PAGE


def _open(path: Path) -> tuple[Image, float, float]:
    """A page image, and which share of its width and height is page: a speck or a ribbon is laid on white paper."""
    from PIL import Image

    try:
        with Image.open(path) as file:
            image = file.convert("RGB")
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        raise CtxError(f"the page image {path} cannot be read: {error}") from error
    width, height = image.size
    wide = max(width, SHORTEST_SIDE, -(-height // LONGEST_RATIO))
    high = max(height, SHORTEST_SIDE, -(-width // LONGEST_RATIO))
    if (wide, high) != (width, height):
        paper = Image.new("RGB", (wide, high), "white")
        paper.paste(image, (0, 0))
        image = paper
    return image, width / wide, height / high


def _special_tokens(processor: Any) -> list[str]:
    tokenizer = processor.tokenizer
    added = [str(token) for token in tokenizer.added_tokens_decoder.values() if token.special]
    return sorted({*tokenizer.all_special_tokens, *added} - {""}, key=len, reverse=True)


def _choose_device(wanted: str) -> str:
    """auto, cpu, mps, cuda or cuda:N as torch writes it. One that is named but not there is an error."""
    import torch

    check("device", wanted, "device")
    kind, _, number = wanted.partition(":")
    cuda, mps = torch.cuda.is_available(), torch.backends.mps.is_available()
    if wanted == "auto":
        return "cuda" if cuda else "mps" if mps else "cpu"
    if kind == "cuda" and (not cuda or int(number or 0) >= torch.cuda.device_count()):
        raise EncoderUnavailable(f"the device {wanted} is not there: torch {torch.__version__} does not see it")
    if kind == "mps" and not mps:
        raise EncoderUnavailable(f"the device mps is not there: torch {torch.__version__} does not see it")
    return wanted


def choose_dtype(device: str) -> Any:
    """bfloat16 on an accelerator that has it. Never on a CPU: most must emulate it, six times slower than without; and
    on the few that need not, an index would hold other vectors than on the rest, off by more than a score may be."""
    import torch

    if device.startswith("cuda") and torch.cuda.is_bf16_supported():
        return torch.bfloat16
    return torch.float32


def _free_memory(device: str) -> tuple[int, int]:
    """Bytes an accelerator has left for activations, and the most that activations took so far; zeros elsewhere."""
    import torch

    if not device.startswith("cuda"):
        return 0, 0
    held = torch.cuda.memory_allocated(device)
    free, _ = torch.cuda.mem_get_info(device)
    return free + torch.cuda.memory_reserved(device) - held, torch.cuda.max_memory_allocated(device) - held


def engine() -> Any:
    """The module colpali_engine.models, imported the way it works beside a CPU torch."""
    missing = missing_packages()
    if missing:
        raise EncoderUnavailable(
            f"the visual encoder colpali needs packages that are not installed: {', '.join(missing)}", hint=INSTALL
        )
    with quiet():
        try:
            allow_torchvision()
            from colpali_engine import models
        except (ImportError, OSError, RuntimeError) as error:
            reason = str(error).strip().partition("\n")[0] or type(error).__name__
            raise EncoderUnavailable(f"the packages behind colpali do not load: {reason}", hint=INSTALL) from error
    return models
