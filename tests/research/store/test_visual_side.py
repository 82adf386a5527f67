"""Which visual side an index has: one value instead of comparing names."""

from __future__ import annotations

import pytest
from index_making import Making

from research.store.vectors import VisualSide


@pytest.mark.parametrize(
    ("name", "dim", "kind"),
    [
        ("off", 0, "off"),
        ("regions:minilm", 384, "regions"),
        ("colpali:vidore/colSmol@1a2b", 128, "model"),
        ("regional/model", 64, "model"),  # only the word before the colon counts
    ],
)
def test_the_kind_is_read_from_the_name(making: Making, name: str, dim: int, kind: str) -> None:
    making.catalog.visual.set_encoder(name, dim)
    making.catalog.visual.set_problem("no room")
    with making.catalog.snapshot() as snapshot:
        assert snapshot.visual.side() == VisualSide(kind, name, dim, "no room")  # type: ignore[arg-type]


def test_an_index_without_any_is_off(making: Making) -> None:
    assert making.catalog.visual.side() == VisualSide("off", "", 0, "")
