"""Every operation of the OpenAPI document, with requests that Schemathesis makes up: as the document says, and against
it. Whatever comes, the answer is one that the document has, and none is the server's own failure.
"""

from __future__ import annotations

import asyncio
import shutil
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)
from starlette.types import ASGIApp, Receive, Scope, Send

from ingest import start_job
from research.index import Index
from research.service.app import Assembled, assemble
from research.service.problems import MEDIA_TYPE
from research.service.service import ServeOptions
from tests.pace import draws

HOST, PORT = "127.0.0.1", 8765
EXAMPLES = 12  # of each operation and kind; a question takes tens of milliseconds
CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]
BEFORE_ANY_OPERATION = {403, 405, 408, 414, 431}  # the guard's: said of every request, and so of none in the document


@dataclass(frozen=True, slots=True)
class Served:
    """The whole server, guard and all, and what there is in its index."""

    made: Assembled
    document: dict[str, Any]
    doc_id: str
    pages: int


@pytest.fixture(scope="module")
def served(sample_index: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("contract")
    shutil.copytree(sample_index, folder / "index")
    (folder / "allowed").mkdir()
    options = ServeOptions(token_file=folder / "token", allow_ingest=True, roots=(folder / "allowed",))
    made = assemble(Index(folder / "index"), options, start_job=start_job)
    first = made.service.index.documents.list()[0]
    yield Served(made, asyncio.run(_document(made.app)), first.doc_id, first.num_pages)
    asyncio.run(made.service.close())


async def _document(app: ASGIApp) -> dict[str, Any]:
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url=f"http://{HOST}:{PORT}") as client:
        document: dict[str, Any] = (await client.get("/openapi.json")).json()
        return document


@pytest.mark.slow
def test_the_document_can_be_made_a_client_from(served: Served) -> None:
    operations = [operation for path in served.document["paths"].values() for operation in path.values()]
    assert served.document["openapi"].startswith("3.1")
    assert all(operation.get("summary") for operation in operations)
    assert len({operation["operationId"] for operation in operations}) == len(operations)


@pytest.mark.parametrize(
    "mode", [GenerationMode.POSITIVE, pytest.param(GenerationMode.NEGATIVE, marks=pytest.mark.slow)]
)
def test_no_operation_fails(served: Served, mode: GenerationMode) -> None:
    schema = schemathesis.openapi.from_dict(_as_schemathesis_reads(served.document))
    schema.app = _as_owner(served.made)
    statuses: dict[str, Counter[int]] = {}
    failures: list[str] = []
    for each in schema.get_all_operations():
        operation: Any = each.ok()  # type: ignore[union-attr]
        seen = statuses[operation.label] = Counter()
        try:
            _try_out(operation, mode, served, seen)
        except Unsatisfiable:
            assert mode is GenerationMode.NEGATIVE  # an operation that takes nothing has no wrong request
        except (Exception, BaseExceptionGroup) as error:  # noqa: BLE001  the others are tried, too
            failures.append(f"{operation.label}: {error}")
    assert not failures, "\n\n".join(failures)
    found = {status for seen in statuses.values() for status in seen}
    assert {200, 404, 422} <= found if mode is GenerationMode.POSITIVE else 422 in found
    assert not [label for label, seen in statuses.items() if any(status >= 500 for status in seen)]


def _try_out(operation: Any, mode: GenerationMode, served: Served, statuses: Counter[int]) -> None:
    @draws(EXAMPLES, suppress_health_check=[*HealthCheck])
    @given(case=operation.as_strategy(generation_mode=mode), known=st.booleans(), page=st.integers(1, served.pages))
    def tried(case: Any, known: bool, page: int) -> None:
        if known:  # so that there is something to find
            values = {"doc_id": served.doc_id, "page": page}
            case.path_parameters |= {name: value for name, value in values.items() if name in case.path_parameters}
        answer = case.call()
        statuses[answer.status_code] += 1
        if answer.status_code in BEFORE_ANY_OPERATION:
            assert answer.headers["content-type"] == [MEDIA_TYPE]
        else:
            case.validate_response(answer, checks=CHECKS)

    tried()


def _as_owner(made: Assembled) -> ASGIApp:
    """The server to somebody who has the token and calls it by its name."""
    token_file = made.service.options.token_file
    assert token_file is not None
    own = [(b"host", f"{HOST}:{PORT}".encode()), (b"authorization", b"Bearer " + token_file.read_bytes().strip())]

    async def asked(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":  # each client of Schemathesis would start and stop the server
            for _ in range(2):
                await send({"type": f"{(await receive())['type']}.complete"})
            return
        others = [each for each in scope["headers"] if each[0] not in (b"host", b"authorization")]
        await made.app({**scope, "server": (HOST, PORT), "headers": [*own, *others]}, receive, send)

    return asked


def _as_schemathesis_reads(document: Any) -> Any:
    """It takes the schema of a stream for that of each event, and trips over tuples in lists: less is said of both."""
    if isinstance(document, list):
        return [_as_schemathesis_reads(each) for each in document]
    if not isinstance(document, dict):
        return document
    read = {name: _as_schemathesis_reads(each) for name, each in document.items()}
    if "text/event-stream" in read:
        read["text/event-stream"] = {}
    if isinstance(tuples := read.pop("prefixItems", None), list):
        read["items"] = tuples[0]
    return read
