"""The stages a document passes: names as they stand in the ledger and among what was given up."""

STAGE_READ = "read"
STAGE_VECTORS = "vectors"
STAGE_IMAGES = "images"
STAGE_OCR = "ocr"
STAGE_VISUAL = "visual"

STAGES = frozenset({STAGE_READ, STAGE_VECTORS, STAGE_IMAGES, STAGE_OCR, STAGE_VISUAL})
