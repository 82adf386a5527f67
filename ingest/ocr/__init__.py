"""OCR: what pages need it (`need`), engines that read images (`engines`), and pages rewritten with what was read
(`job`). Nothing is imported here, so that a run with nothing for OCR loads no PDF library in its leading process."""
