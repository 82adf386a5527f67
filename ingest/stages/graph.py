"""The graph, brought up to the catalog: what new documents, code and commits say of each other and of the others."""

from __future__ import annotations

from ingest.stages.base import Work
from research.graph.update import is_behind, update_graph
from research.observe import log_failure
from research.store.catalog.catalog import Catalog


class GraphStage:
    name = "graph"

    def pending(self, work: Work) -> bool:
        return is_behind(work.catalog)

    def run(self, work: Work) -> None:
        update_graph_of(work.catalog)


def update_graph_of(catalog: Catalog) -> None:
    """What is left to do, or fails, is left to the first question that needs the graph: no run fails for it."""
    try:
        update_graph(catalog)
    except Exception as error:  # noqa: BLE001  the documents are there, and that is what a run is for
        log_failure("graph", "bringing it up to date", error)
