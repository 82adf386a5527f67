"""Keeping the libraries behind models quiet while they work."""

from __future__ import annotations

import logging
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from typing import Any


@contextmanager
def quiet() -> Iterator[None]:
    """Nothing these libraries say on the way is for the user: no bars, no warnings, no log lines. Nor is anything for
    their makers: the hub's client reads once, when it is imported, that it is to report nothing."""
    os.environ.update(HF_HUB_DISABLE_TELEMETRY="1", DO_NOT_TRACK="1")
    before = logging.root.manager.disable
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        logging.disable(logging.CRITICAL)
        try:
            with _no_bars():
                yield
        finally:
            logging.disable(before)


def is_there(package: str) -> bool:
    """Whether a package could be imported; it is not."""
    try:
        return find_spec(package) is not None
    except (ImportError, ValueError):  # blocked, or half removed
        return False


@contextmanager
def _no_bars() -> Iterator[None]:
    if not (is_there("huggingface_hub") and is_there("transformers") and is_there("torch")):
        yield
        return
    bars: Any = import_module("huggingface_hub.utils")
    talk: Any = import_module("transformers.utils.logging")
    hub, own = bars.are_progress_bars_disabled(), talk.is_progress_bar_enabled()
    bars.disable_progress_bars()
    talk.disable_progress_bar()
    try:
        yield
    finally:
        if not hub:
            bars.enable_progress_bars()
        if own:
            talk.enable_progress_bar()
