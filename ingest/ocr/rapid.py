"""RapidOCR: PP-OCR models in ONNX Runtime, weights out of its own wheel, for machines without tesseract."""

from __future__ import annotations

import logging
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from PIL import Image

from ingest.ocr.engine import OcrLine, grey, in_reading_order, is_readable, is_tall, mean_confidence, read_upright
from ingest.pdf.lines import alnum_count, clean_text
from research.boxes import fractions
from research.errors import CtxError, OcrError
from research.lazy import switch_off

INSTALL = "pip install 'rapidocr>=3.10,<3.11'"
REINSTALL = "pip install --force-reinstall 'rapidocr>=3.10,<3.11'"

_PAGE_SIDE = 1650  # measured: the recogniser wants these pixels, the detector does with fewer
_DETECTOR_SIDE = 1280
_MIN_SCORE = 0.5
_POOR = 0.82  # it is sure of itself even where it errs: 0.7 upside down, 0.95 and more on any other page
_PADDING = 0.12  # of a box's height that the detector adds on every side


class RapidEngine:
    """Reads with rapidocr. Its models are loaded at the first image. Raises `CtxError` where it is missing."""

    def __init__(self) -> None:
        spec = find_spec("rapidocr")
        try:
            self.name = f"rapidocr {version('rapidocr')}"
        except PackageNotFoundError as error:
            raise CtxError("rapidocr is not installed", hint=f"install it with: {INSTALL}") from error
        if spec is None or spec.origin is None:
            raise CtxError("rapidocr is not installed", hint=f"install it with: {INSTALL}")
        self.page_side = _PAGE_SIDE
        self._models = Path(spec.origin).parent / "models"
        self._engine: Any = None

    def read(self, image: Image.Image) -> list[OcrLine]:
        flat = grey(image, _PAGE_SIDE)
        if not is_readable(flat):
            return []
        return in_reading_order(read_upright(flat, self._read, _turn, poor=_POOR), flat.size)

    def _read(self, image: Image.Image) -> list[OcrLine]:
        import numpy as np

        engine = self._load()
        pixels = np.asarray(image.convert("RGB"))
        try:
            found = engine(pixels)
        except MemoryError:
            raise
        except Exception as error:  # OpenCV and ONNX Runtime raise all kinds
            raise OcrError(f"rapidocr failed: {type(error).__name__}") from error
        if found.boxes is None or found.txts is None:
            return []
        quads = zip(found.boxes, found.txts, found.scores, strict=True)
        lines = [_line(quad.tolist(), text, float(score), image.size) for quad, text, score in quads]
        return [line for line in lines if line]

    def _load(self) -> Any:
        if self._engine is None:
            # It brings a handler of its own that writes to stderr.
            logging.getLogger("RapidOCR").addHandler(logging.NullHandler())
            switch_off()  # it imports ONNX Runtime by itself
            with _no_socket_probe():
                from rapidocr import RapidOCR

            self._engine = RapidOCR(
                params={
                    "Global.log_level": "critical",
                    "Global.use_cls": False,  # it turns lines upside down that were not
                    "Global.text_score": _MIN_SCORE,
                    # Named files are never downloaded.
                    "Det.model_path": self._model("det"),
                    "Rec.model_path": self._model("rec"),
                    "Det.limit_type": "max",
                    "Det.limit_side_len": _DETECTOR_SIDE,
                    "Rec.rec_batch_num": 1,  # lines of one batch are padded to the longest
                    "EngineConfig.onnxruntime.intra_op_num_threads": 1,
                    "EngineConfig.onnxruntime.inter_op_num_threads": 1,
                    "EngineConfig.onnxruntime.enable_cpu_mem_arena": True,  # or a fifth of the time is system time
                }
            )
        return self._engine

    def _model(self, task: str) -> str:
        files = sorted(self._models.glob(f"*_{task}_*.onnx"))
        if not files:
            raise CtxError("rapidocr's models are missing", hint=f"reinstall it with: {REINSTALL}")
        return str(files[-1])


@contextmanager
def _no_socket_probe() -> Iterator[None]:
    """It imports urllib3 for downloads that nobody asks it for, and that opens a socket at once to see whether this
    machine speaks IPv6, unless Python says that it does not."""
    before = socket.has_ipv6
    socket.has_ipv6 = False
    try:
        yield
    finally:
        socket.has_ipv6 = before


def _turn(image: Image.Image, lines: list[OcrLine]) -> int:
    # It turns tall lines a quarter to the left before it reads them: read well, the page wants just that.
    if sum(is_tall(line, image.size) for line in lines) * 2 <= len(lines):
        return 180
    return 270 if mean_confidence(lines) >= _POOR else 90


def _line(quad: list[list[float]], raw: str, score: float, size: tuple[int, int]) -> OcrLine | None:
    text = clean_text(raw)
    if not text or (alnum_count(text) <= 1 and score < 0.7):
        return None
    (ax, ay), (bx, by), (cx, cy), (dx, dy) = quad  # from the top left, clockwise
    across = bx - ax
    slope = (by - ay + cy - dy) / (bx - ax + cx - dx) if across > 0 and bx - ax + cx - dx > 0 else 0.0
    if abs(slope) > 0.15:
        slope = 0.0
    x0, x1, y0, y1 = min(ax, dx), max(bx, cx), min(ay, by), max(cy, dy)
    pad = _PADDING * min(y1 - y0, x1 - x0)
    box = fractions((x0 + pad, y0 + pad, x1 - pad, y1 - pad), *size)
    return OcrLine(text, box, round(min(1.0, max(0.0, score)), 3), slope)
