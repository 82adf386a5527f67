"""Encoders under a policy. One at an address is sent all that is ingested, classified or not yet: no policy can decide
that piece by piece, because things are labelled after they were read. So it is refused, unless the user allows it by
its name.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from research.addresses import is_encoder_address, same_encoder
from research.errors import EncoderNotAllowed
from research.governance.policy_files import has_policies

if TYPE_CHECKING:
    from research.settings import Settings


def check_encoder(name: str, settings: Settings) -> None:
    """Raise EncoderNotAllowed for an encoder at an address where a policy is in force."""
    if not is_encoder_address(name) or not has_policies(settings.policy):
        return
    if any(name == allowed or same_encoder(name, allowed) for allowed in settings.allowed_encoders):
        return
    raise EncoderNotAllowed(
        f"a policy is in force, and {name} would be sent the text of everything that is ingested",
        hint=f"use the embedded encoder; or, if all of it may go there: allowed_encoders = [{json.dumps(name)}]",
    )
