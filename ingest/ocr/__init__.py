"""OCR: what pages need it (`need`), engines that read images (`engines`), and pages rewritten with what was read
(`job`). Nothing is imported here: the process that leads a run needs no PDF library to choose an engine."""
