"""Loading the libraries behind the colpali encoder, and keeping them quiet while they work."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from research.encoders.torchvision_shim import allow_torchvision
from research.encoders.visual.base import EncoderUnavailable

INSTALL = "pip install 'ctx-research[visual]'"
PACKAGES = ("torch", "torchvision", "transformers", "peft", "PIL", "colpali_engine")


def installed() -> bool:
    """Whether the packages of the `visual` extra are there. Imports none of them."""
    return not _missing()


def engine() -> Any:
    """The module colpali_engine.models, imported the way it works beside a CPU torch."""
    missing = _missing()
    if missing:
        raise EncoderUnavailable(
            f"the visual encoder colpali needs packages that are not installed: {', '.join(missing)}", hint=INSTALL
        )
    with quiet():
        try:
            allow_torchvision()
            from colpali_engine import models
        except (ImportError, OSError, RuntimeError) as error:
            reason = str(error).strip().partition("\n")[0] or type(error).__name__
            raise EncoderUnavailable(f"the packages behind colpali do not load: {reason}", hint=INSTALL) from error
    return models


@contextmanager
def quiet() -> Iterator[None]:
    """Nothing these libraries say on the way is for the user: no bars, no warnings, no log lines."""
    before = logging.root.manager.disable
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        logging.disable(logging.CRITICAL)
        try:
            with _no_bars():
                yield
        finally:
            logging.disable(before)


@contextmanager
def _no_bars() -> Iterator[None]:
    if _missing():
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


def _missing() -> list[str]:
    return [name for name in PACKAGES if not _there(name)]


def _there(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except (ImportError, ValueError):  # blocked, or half removed
        return False
