"""Experiences: what was tried, what was expected of it, what came of it; and values, what many of them have in common.

`records` says what each is and what it is found by, `intake` checks what comes, `experiences` keeps it; `clusters` and
`values` find what experiences share.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from research.lazy import exports

if TYPE_CHECKING:
    from research.experiences.experiences import Experiences, import_lines
    from research.experiences.intake import LONGEST_TEXT, MOST_ITERATIONS, Choices, axis_of, choose, outcome_of
    from research.experiences.records import (
        KIND,
        OUTCOMES,
        AxisValues,
        Experience,
        ExperienceResults,
        FoundExperience,
        FoundValue,
        Imported,
        ImportedLines,
        LineProblem,
        Rebuilt,
        Removed,
        Value,
        ValueResults,
    )
    from research.experiences.values import VALUES, Values, is_installed, value_of
else:
    __getattr__, __dir__, __all__ = exports(
        __name__,
        {
            "experiences": "Experiences import_lines",
            "intake": "Choices LONGEST_TEXT MOST_ITERATIONS axis_of choose outcome_of",
            "records": (
                "AxisValues Experience ExperienceResults FoundExperience FoundValue Imported "
                "ImportedLines KIND LineProblem OUTCOMES Rebuilt Removed Value ValueResults"
            ),
            "values": "VALUES Values is_installed value_of",
        },
    )
