"""How good answers are: questions with gold pages or turns, and figures of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from research.lazy import exports

if TYPE_CHECKING:
    from research.evaluation.questions import (
        GoldCheck,
        Question,
        asks_memories,
        check_field,
        look_up,
        read_questions,
        read_set,
    )
    from research.evaluation.scoring import (
        METRICS,
        Asked,
        Failure,
        Figure,
        Latency,
        RankedMemory,
        RankedPage,
        Report,
        Row,
        ask_all,
        ask_memories,
        fill,
        summarise,
        write_run,
    )
else:
    __getattr__, __dir__, __all__ = exports(
        __name__,
        {
            "questions": "GoldCheck Question asks_memories check_field look_up read_questions read_set",
            "scoring": (
                "Asked Failure Figure Latency METRICS RankedMemory RankedPage Report Row ask_all "
                "ask_memories fill summarise write_run"
            ),
        },
    )
