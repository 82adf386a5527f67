"""Files for their owner only."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def private_files() -> Iterator[None]:
    """Whatever this process and its children create meanwhile can be read by nobody else.

    An index folder is private when we made it; one that was there before may be open to others, and SQLite, Chroma and
    Pillow create their files as they please.
    """
    before = os.umask(0o077)
    try:
        yield
    finally:
        os.umask(before)
