"""The published JSON schemas (draft 2020-12) of a request and of a package."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from research.packages.package import ContextPackage
from research.packages.request import ContextBuildRequest

_DIALECT = "https://json-schema.org/draft/2020-12/schema"


def request_schema() -> dict[str, Any]:
    return {"$schema": _DIALECT, "$id": "urn:ctx:context-build-request:1"} | ContextBuildRequest.model_json_schema(
        by_alias=True, mode="validation"
    )


def package_schema() -> dict[str, Any]:
    return {"$schema": _DIALECT, "$id": "urn:ctx:context-package:1"} | ContextPackage.model_json_schema(
        by_alias=True, mode="serialization"
    )


SCHEMAS: Mapping[str, Callable[[], dict[str, Any]]] = {"request": request_schema, "package": package_schema}
