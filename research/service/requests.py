"""An `AskRequest` as the body of an HTTP request, or as its query: read and described by its own records."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import AfterValidator, GetCoreSchemaHandler

from research.parameters import input_schema
from research.request import AskRequest, parameters_of, read_request

if TYPE_CHECKING:
    from starlette.datastructures import QueryParams


@dataclass(frozen=True, slots=True)
class Reads:
    """Of an annotated `AskRequest`: the door that its body comes through. What is wrong is raised as UsageError."""

    door: str

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> Any:
        return handler.generate_schema(Annotated[dict[str, Any], AfterValidator(self._read)])

    def __get_pydantic_json_schema__(self, schema: Any, handler: Any) -> dict[str, Any]:
        return input_schema(parameters_of(self.door))

    def _read(self, given: dict[str, Any]) -> AskRequest:
        return read_request(self.door, given)


def query_parameters(door: str) -> list[dict[str, Any]]:
    """What a query may hold, for the OpenAPI document."""
    return [
        {"name": each.name, "in": "query", "required": each.required, "schema": each.schema()}
        for each in parameters_of(door)
    ]


def read_query(door: str, query: QueryParams) -> AskRequest:
    """The request that a query is. Raises UsageError."""
    lists = {each.name for each in parameters_of(door) if each.kind == "texts"}
    return read_request(door, {name: query.getlist(name) if name in lists else query[name] for name in query})
