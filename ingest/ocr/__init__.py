"""OCR: what pages need it, engines that read images, and pages rewritten with what was read."""

from ingest.ocr.assemble import OcrResult, blocks_of, read_page
from ingest.ocr.engines import ENGINES, OcrEngine, OcrError, OcrLine, choose_engine
from ingest.ocr.job import OcrFailure, OcrTask, ocr_document
from ingest.ocr.need import OcrNeed, PageFacts, count_broken, ocr_need

__all__ = [
    "ENGINES",
    "OcrEngine",
    "OcrError",
    "OcrFailure",
    "OcrLine",
    "OcrNeed",
    "OcrResult",
    "OcrTask",
    "PageFacts",
    "blocks_of",
    "choose_engine",
    "count_broken",
    "ocr_document",
    "ocr_need",
    "read_page",
]
