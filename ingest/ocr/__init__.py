"""OCR: which pages need it and which engine reads them (`choose`), what engines share (`engine`), pages rewritten with
their text (`page`). Nothing is imported here, so that a run with nothing for OCR loads no PDF library in its leading
process."""
