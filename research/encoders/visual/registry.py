"""Names of colpali encoders and what they load. Imports nothing heavy before something is loaded."""

from __future__ import annotations

import re
import shlex

from research.encoders import checkpoints
from research.encoders.visual.base import VisualEncoder
from research.encoders.visual.colpali import KIND, ColpaliEncoder, full_name
from research.encoders.visual.device import accelerator_there
from research.encoders.visual.families import find_checkpoint
from research.encoders.visual.loading import engine, installed
from research.errors import EncoderUnavailable, UsageError

DEFAULT_CHECKPOINT = "ModernVBERT/colmodernvbert"

_NAME = re.compile(
    r"colpali(?::(?P<checkpoint>.+?))?(?:@(?P<mark>[0-9a-f]{12}))?(?P<int8>\+int8)?(?:\+pool(?P<pool>[1-9]\d*))?"
)


def colpali_ready(checkpoint: str = DEFAULT_CHECKPOINT) -> bool:
    """Whether `auto` may choose colpali: the extra is installed, the weights are on this machine and so is an
    accelerator. Imports no torch and never reaches the network."""
    return installed() and accelerator_there() and checkpoints.at_hand(checkpoint)


def identify(wanted: str) -> str:
    """The name an index would remember a model by, told from its files without loading it: "colpali:CHECKPOINT", or
    just CHECKPOINT. A hub name that is not on this machine is fetched, for the user has asked for it by name."""
    match = _parse(wanted)
    if not installed():
        engine()  # says which packages are missing, and how to get them
    found = find_checkpoint(match["checkpoint"] or DEFAULT_CHECKPOINT, typed=True)
    return full_name(found.name, int8=match["int8"] is not None, pool_factor=int(match["pool"] or 1))


def checkpoint_of(name: str) -> str:
    """The hub name or folder that a name means."""
    return _parse(name)["checkpoint"] or DEFAULT_CHECKPOINT


def load_visual_encoder(
    name: str,
    *,
    device: str = "auto",
    int8: bool = False,
    pool_factor: int = 1,
    batch_size: int | None = None,
    threads: int | None = None,
) -> VisualEncoder:
    """The encoder of "colpali", "colpali:CHECKPOINT" or the full name an index remembers, whose own int8 and pooling
    then hold. It must be on this machine: nothing is fetched. A folder whose weights changed since is refused: its
    vectors would not fit the index."""
    match = _parse(name)
    encoder = ColpaliEncoder(
        match["checkpoint"] or DEFAULT_CHECKPOINT,
        device=device,
        int8=int8 or match["int8"] is not None,
        pool_factor=int(match["pool"] or pool_factor),
        batch_size=batch_size,
        threads=threads,
    )
    if match["mark"] and encoder.name != name:
        raise EncoderUnavailable(
            f"the checkpoint {match['checkpoint']} is not the one that filled this index: its weights have changed",
            hint=f"ctx ingest PATH --visual {shlex.quote(match['checkpoint'])}",
        )
    return encoder


def _parse(name: str) -> re.Match[str]:
    match = _NAME.fullmatch(name if name.partition(":")[0] == KIND else f"{KIND}:{name}")
    if match is None:
        raise UsageError(f"no visual encoder is called {name!r}", hint=f"{KIND}:HUB/NAME or {KIND}:FOLDER")
    return match
