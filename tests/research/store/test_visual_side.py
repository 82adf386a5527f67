"""Which visual side an index has: one value instead of comparing names."""

from __future__ import annotations

import pytest
from index_making import Making

from research.store.catalog import page_vectors
from research.store.catalog.page_vectors import VisualSide, visual_side


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
    page_vectors.set_encoder(making.catalog, name, dim)
    page_vectors.set_problem(making.catalog, "no room")
    with making.catalog.snapshot() as snapshot:
        assert visual_side(snapshot) == VisualSide(kind, name, dim, "no room")  # type: ignore[arg-type]


def test_an_index_without_any_is_off(making: Making) -> None:
    assert visual_side(making.catalog) == VisualSide("off", "", 0, "")
