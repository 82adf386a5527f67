"""The graph: what the things in an index say of each other, read from what is there, without a model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from research.lazy import exports

if TYPE_CHECKING:
    from research.graph.neighbourhood import (
        MOST_NODES,
        WEIGHTS,
        Edge,
        Neighbourhood,
        ShownGraph,
        ShownNode,
        find_neighbourhood,
        neighbour_scores,
        references_said,
        seeds_of,
        shown_graph,
        spread,
        started_from,
    )
    from research.graph.update import GraphUpdate, is_behind, update_graph
else:
    __getattr__, __dir__, __all__ = exports(
        __name__,
        {
            "neighbourhood": (
                "Edge MOST_NODES Neighbourhood ShownGraph ShownNode WEIGHTS find_neighbourhood neighbour_scores "
                "references_said seeds_of shown_graph spread started_from"
            ),
            "update": "GraphUpdate is_behind update_graph",
        },
    )
