"""The stages a document passes after its text is in: names as they stand in the ledger."""

STAGE_VECTORS = "vectors"
STAGE_IMAGES = "images"
STAGE_OCR = "ocr"

STAGES = frozenset({STAGE_VECTORS, STAGE_IMAGES, STAGE_OCR})
