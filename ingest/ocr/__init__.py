"""OCR: which pages need it (`detect`), engines that read images (`engine`, `choose`), pages rewritten with their text
(`run`). Nothing is imported here, so that a run with nothing for OCR loads no PDF library in its leading process."""
