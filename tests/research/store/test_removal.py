"""Which documents a name means, and what is left of one that was removed."""

from __future__ import annotations

import pytest
from index_making import Making

from research.errors import NothingFoundError, UsageError
from research.store import generations
from research.store import publish as writer
from research.store.holdings import plan_removal, remove
from research.store.publish import publish_if_possible


@pytest.fixture
def filled(making: Making) -> Making:
    making.add("walrus.pdf", ["walrus"])
    making.add("walrus-annex.pdf", ["annex"])
    making.add("notes [1].pdf", ["one"], folder="/docs")
    making.add("notes [1].pdf", ["another"], folder="/other")
    making.embed()
    return making


def test_only_a_pattern_may_mean_several(filled: Making) -> None:
    assert plan_removal(filled.paths, ["walrus*"]).pattern == "walrus*"
    assert plan_removal(filled.paths, ["walrus-*"]).pattern == ""
    assert len(plan_removal(filled.paths, ["walrus", "/other/notes [1].pdf"]).documents) == 2
    # A name with brackets that two files have is a name, and does not say which.
    with pytest.raises(UsageError, match="matches 2 documents"):
        plan_removal(filled.paths, ["notes [1].pdf"])


def test_what_is_removed_is_gone_from_the_collections_too(filled: Making) -> None:
    writer.publish(filled.catalog)
    removed = remove(filled.paths, plan_removal(filled.paths, ["walrus"]).documents)
    assert ([d.filename for d in removed.documents], removed.published) == (["walrus.pdf"], True)
    assert not generations.state_of(filled.catalog).behind
    with pytest.raises(NothingFoundError, match="no longer in the index"):
        remove(filled.paths, removed.documents)


def test_collections_that_cannot_be_written_are_left_for_later(filled: Making) -> None:
    generation = writer.publish(filled.catalog)
    blocked = filled.paths.chroma / "draft"
    blocked.write_text("in the way of the next copy")
    removed = remove(filled.paths, plan_removal(filled.paths, ["walrus"]).documents)
    assert not removed.published
    assert filled.count("documents") == 3, "the catalog has forgotten it all the same"
    assert generation.path.exists()
    blocked.unlink()
    assert publish_if_possible(filled.paths, generations.state_of(filled.catalog))
    assert not generations.state_of(filled.catalog).behind
