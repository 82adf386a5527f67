"""Loading the libraries behind the colpali encoder."""

from __future__ import annotations

from typing import Any

from research.encoders.libraries import allow_torchvision, is_there, quiet
from research.errors import EncoderUnavailable

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


def _missing() -> list[str]:
    return [name for name in PACKAGES if not is_there(name)]
