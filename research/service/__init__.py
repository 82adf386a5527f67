"""An open index for programs, agents and browsers: HTTP, MCP and a web page. Nobody else in research knows it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from research.lazy import exports

if TYPE_CHECKING:
    from research.service.app import assemble
    from research.service.jobs import JobRunner
    from research.service.mcp.results import TextIn
    from research.service.mcp.server import serve_stdio
    from research.service.server import IndexServer, address_of, listen
    from research.service.service import ServeOptions, Service
    from research.service.tokens import (
        TokenEntry,
        default_token_file,
        make_token,
        owner_token,
        revoke_tokens,
        tokens_of,
    )
else:
    __getattr__, __dir__, __all__ = exports(
        __name__,
        {
            "app": "assemble",
            "jobs": "JobRunner",
            "mcp.results": "TextIn",
            "mcp.server": "serve_stdio",
            "server": "IndexServer address_of listen",
            "service": "ServeOptions Service",
            "tokens": "TokenEntry default_token_file make_token owner_token revoke_tokens tokens_of",
        },
    )
