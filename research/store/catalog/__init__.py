"""The catalog: tables of documents, items, memories and what is kept beside them."""

from lazy_loader import attach

__getattr__, __dir__, __all__ = attach(
    __name__,
    [
        "chunk_vectors",
        "edge_writes",
        "edges",
        "governance",
        "ledger",
        "memory_writes",
        "packages",
        "page_vectors",
        "session_turns",
    ],
)
