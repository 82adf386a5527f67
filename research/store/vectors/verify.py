"""Checks of the collections for `ctx doctor`: what they hold, and whether this Chroma can be asked the short way."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from research.store.catalog.catalog import Catalog
from research.store.catalog.reader import Reader
from research.store.catalog.vectors import dim_of
from research.store.vectors.catch_up import failure_of
from research.store.vectors.chroma import ClientReader, CoreReader, VectorReader, keys_through_core, open_client
from research.store.vectors.generations import TEXT, VISUAL, Generation, current, is_damaged, state_of
from research.store.vectors.writer import text_keys, visual_keys

_REBUILD = "build them again with: ctx reindex"
_OTHER_MAKE = "install the chromadb that ctx names: pip install --force-reinstall 'chromadb>=1.5.9,<1.6'"


@dataclass(frozen=True, slots=True)
class Finding:
    """What was found, and what to do about it; nothing if all is well."""

    message: str
    remedy: str = ""


def holds_everything(catalog: Catalog) -> bool:
    """Open the published collections and compare them with the catalog, record by record."""
    state = state_of(catalog)
    if state.generation is None or state.behind or is_damaged(state.generation):
        return False
    return _published_keys(state.generation.path) == [text_keys(catalog), visual_keys(catalog)]


def _published_keys(path: Path) -> list[set[str]]:
    """The keys of each collection, from the core; where it does not do, from the client, which takes a second more."""
    names = (TEXT, VISUAL)
    try:
        return [keys_through_core(path, name) for name in names]
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException:  # noqa: BLE001  a panic of the core is no Exception
        client = open_client(path)
        try:
            return [set(client.get_collection(name, embedding_function=None).get(include=[])["ids"]) for name in names]
        finally:
            client.close()


def collections_make(reader: Reader) -> list[Finding]:
    """What keeps the Chroma that is installed from being asked the short way, and what a question falls back to."""
    failed = failure_of(reader.paths.chroma)
    message = f"a question could not bring the collections up to date: {failed}"
    findings = [Finding(message, _REBUILD)] if failed else []
    generation = current(reader)
    if generation is None or not generation.text_records:
        return findings
    core = _problem_of(CoreReader, generation, dim_of(reader))
    if not core:
        return findings
    client = _problem_of(ClientReader, generation, dim_of(reader))
    if not client:
        message = f"Chroma's core cannot be asked ({core}); questions go through its public client, a second slower"
        return [*findings, Finding(message, _OTHER_MAKE)]
    message = f"the collections cannot be read ({core}; {client}); questions compare every vector of the catalog"
    return [*findings, Finding(message, f"{_REBUILD}; or {_OTHER_MAKE}")]


def _problem_of(kind: type[CoreReader] | type[ClientReader], generation: Generation, dim: int) -> str:
    try:
        reader: VectorReader = kind(generation.path)
        reader.nearest(TEXT, [0.0] * dim, 1)
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # noqa: BLE001  a panic of the core is no Exception
        return f"{type(error).__name__}: {error}"
    return ""
