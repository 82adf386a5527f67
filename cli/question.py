"""What `ask` and `search` have in common: reading the question and opening the index for it."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from cli.options import Common, index_of
from cli.output import say
from research.errors import CtxError, NothingFoundError, UsageError
from research.models import Coverage
from research.settings import Settings
from research.store.catalog.documents import find_documents
from research.store.catalog.pages import count_pages
from research.store.client import ChromaClient
from research.store.files.paths import IndexPaths
from research.store.vectors.catch_up import repair_if_behind

# Collections are let go with the process: to take a large one apart takes longer than to search it.
_held: list[ChromaClient] = []


@dataclass(frozen=True, slots=True)
class OpenIndex:
    """An index ready to be asked; `documents` are the ids a question is restricted to, None for all."""

    client: ChromaClient
    documents: list[str] | None


def read_question(given: Sequence[str]) -> str:
    """The words of the command line joined, or stdin for a single `-`. Bytes that are no text are replaced."""
    if list(given) == ["-"]:
        stream = getattr(sys.stdin, "buffer", None)
        text = stream.read().decode("utf-8", "replace") if stream is not None else sys.stdin.read()
    else:
        # Arguments that are no valid text arrive as lone surrogates, which no database or tokenizer takes.
        text = " ".join(given).encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    if not text.strip():
        raise UsageError("the question is empty", hint='ask something: ctx ask "What caused the crisis?"')
    return text.strip()


@contextmanager
def open_index(given: Common, settings: Settings, names: Sequence[str] | None) -> Iterator[OpenIndex]:
    """Mend the collections if an earlier run left them behind, then open the index for reading."""
    paths = index_of(settings)
    if not paths.exists:
        raise _nothing_in(paths)
    if repair_if_behind(paths) and not given.quiet:
        say("ctx: the collections were behind and have been brought up to date")
    client = ChromaClient(paths.root)
    _held.append(client)
    try:
        if count_pages(client.catalog) == 0:
            raise _nothing_in(paths)
        yield OpenIndex(client, _chosen(client, names))
    finally:
        client.catalog.close()


def check_legs(coverage: Coverage) -> None:
    """Raise if no leg could search at all: that is a failure, not an empty answer."""
    if coverage.legs and all(leg.status == "failed" for leg in coverage.legs):
        reasons = "; ".join(f"{leg.name}: {leg.reason}" for leg in coverage.legs)
        raise CtxError(f"the search failed: {reasons}", hint="check the index with: ctx doctor")


def notes_on(coverage: Coverage) -> list[str]:
    """What the answer could not see, a line each, with what to do about it."""
    failed: dict[str, list[str]] = {}
    for leg in coverage.legs:
        if leg.status == "failed":
            failed.setdefault(leg.reason, []).append(leg.name)
    notes = [
        f"the {' and '.join(names)} {'legs' if len(names) > 1 else 'leg'} failed ({reason}); the answer rests on the"
        " others; see: ctx doctor"
        for reason, names in failed.items()
    ]
    if coverage.pages_without_vectors:
        notes.append(
            f"{coverage.pages_without_vectors} of {coverage.pages} pages are searched by their words only, until"
            " they are embedded; finish with: ctx ingest PATH"
        )
    if coverage.pages_without_visual:
        notes.append(
            f"{coverage.pages_without_visual} of {coverage.pages} pages have not been seen by the visual model;"
            " finish with: ctx ingest PATH"
        )
    return notes


def _nothing_in(paths: IndexPaths) -> NothingFoundError:
    what = "has no documents yet" if paths.exists else "does not exist yet"
    return NothingFoundError(
        f"the index {paths.root} {what}, so there is nothing to search", hint="add documents: ctx ingest PATH"
    )


def _chosen(client: ChromaClient, names: Sequence[str] | None) -> list[str] | None:
    if not names:
        return None
    return sorted({found.doc_id for name in names for found in find_documents(client.catalog, name)})
