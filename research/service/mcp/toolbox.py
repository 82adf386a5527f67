"""What a server of tools was started with, and where its work is done. Knows nothing of the SDK."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from research.service.mcp.budget import TextIn
from research.service.mcp.ingesting import Ingest, IngestDoor

if TYPE_CHECKING:
    from research.conversation import TurnMaker
    from research.service.service import Service

_STOP_SECONDS = 4.0  # for an ingest to end in good order


@dataclass(eq=False)
class Toolbox:
    """What a server was started with. `text_in`: where all clients get the text, if somebody said so."""

    service: Service
    ingest: IngestDoor | None = None
    text_in: TextIn | None = None
    ingests: set[Ingest] = field(default_factory=set)  # that run
    maker: TurnMaker | None = None

    @property
    def turns(self) -> TurnMaker:
        """What builds turns: the server's own, or one that is made with the first."""
        if self.maker is None:
            from research.conversation import TurnMaker

            self.maker = TurnMaker(self.service.index)
        return self.maker

    def remember(self, ingest: Ingest) -> None:
        """One that begins; those that are over are forgotten."""
        self.ingests = {each for each in self.ingests if not each.over} | {ingest}

    def stop_ingests(self) -> None:
        """End those that run in good order, and wait for it a little. Blocks."""
        running = [each for each in self.ingests if not each.over]
        for each in running:
            each.stop()
        over = time.monotonic() + _STOP_SECONDS
        for each in running:
            each.ended.wait(max(0.0, over - time.monotonic()))
