"""The tools and resources as a server of the SDK, which only this file, `pipes` and `mount` import.

Blocking work runs elsewhere (`Service`), so that calls go on side by side and one that is cancelled is let go of.
Nothing that happens in a call ends the connection: an agent is told what to do instead.
"""

from __future__ import annotations

import base64
import logging
import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio
import mcp_types as types
from anyio import to_thread
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError

from research import __version__
from research.errors import CtxError, NothingFoundError, UsageError
from research.governance import Principal
from research.observe import log_failure, logger_of
from research.parameters import read_values
from research.parameters import shown as quoted
from research.service.mcp import catalogue, code, contexts, experience, memory, packages, resources
from research.service.mcp.budget import SERVER_NAME, TEXT_IN, Reply, TextIn, shown
from research.service.mcp.catalogue import Tool
from research.service.mcp.clients import product_of, text_in_for
from research.service.mcp.faults import Words
from research.service.mcp.ingesting import Ingest, allowed_paths, ingest_reply
from research.service.mcp.toolbox import Toolbox
from research.service.service import Service

if TYPE_CHECKING:
    from mcp.server.context import ServerRequestContext

    from research.index import Index

    Context = ServerRequestContext[Any, Any]

_PROGRESS_SECONDS = 0.3  # between two notifications
_FOR_ALL = (
    *catalogue.READING, code.SEARCH_CODE, *contexts.CONTEXTS, *packages.PACKAGES, *memory.MEMORY,
)  # fmt: skip

log = logger_of("mcp")


def build_server(toolbox: Toolbox) -> Server[Any]:
    """A server of these tools, for any number of connections."""
    logging.getLogger("mcp").addHandler(logging.NullHandler())  # or Python prints the SDK's warnings on stderr
    handlers = _Handlers(toolbox)
    return Server(
        SERVER_NAME,
        version=__version__,
        instructions=catalogue.INSTRUCTIONS,
        on_list_tools=handlers.list_tools,
        on_call_tool=handlers.call_tool,
        on_list_resources=handlers.list_resources,
        on_list_resource_templates=handlers.list_templates,
        on_read_resource=handlers.read_resource,
        get_tool_input_schema=handlers.input_schema,
    )


class _Handlers:
    """One method a request of the protocol."""

    def __init__(self, toolbox: Toolbox) -> None:
        self._toolbox = toolbox
        told = [*experience.EXPERIENCES, *([catalogue.INGEST] if toolbox.ingest else [])]
        tools = [*_FOR_ALL, *told]
        self._tools = {tool.name: tool for tool in tools}
        self._schemas = {tool.name: tool.schema for tool in tools}

    def input_schema(self, name: str) -> dict[str, Any] | None:
        return self._schemas.get(name)

    async def list_tools(self, ctx: Context, params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[self._described(tool) for tool in self._tools_for(ctx).values()])

    async def call_tool(self, ctx: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        tools = self._tools_for(ctx)
        words = Words(can_ingest=catalogue.INGEST.name in tools)
        begun = time.perf_counter()
        try:
            tool = _named(tools, params.name)
            given = dict(params.arguments or {})
            # Every result says where its text is, and takes the other place; to short tools it makes no difference.
            elsewhere = None if tool.has_text_in else given.pop("text_in", None)
            values = tool.arguments(read_values(tool.parameters, given))
            named = values.get("text_in") or (elsewhere if elsewhere in TEXT_IN else None)
            text_in: TextIn = named or self._toolbox.text_in or text_in_for(_client_name(ctx))
            if tool.has_text_in:
                values["text_in"] = text_in
            reply = await self._run(tool, values, words, ctx)
        except CtxError as error:
            log.info("tool %s: %s", params.name if params.name in tools else "unknown", type(error).__name__)
            return _error(words.told(self._of_empty(error, words)))
        except Exception as error:  # noqa: BLE001  a mistake of ours costs the call, not the connection
            log_failure("mcp", f"the tool {params.name}", error)
            return _error(words.told(error))
        log.info("tool %s: %.3f s", tool.name, time.perf_counter() - begun)
        return _result(reply, text_in)

    async def list_resources(
        self, ctx: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        cursor = (params.cursor if params else None) or ""
        try:
            entries, following = await self._service(ctx).look(partial(resources.document_entries, cursor=cursor))
        except NothingFoundError:  # there is no index yet
            entries, following = [], ""
        except CtxError as error:
            raise MCPError(types.INVALID_PARAMS, Words().told(error)) from None
        listed = [
            types.Resource(
                uri=entry.uri,
                name=entry.name,
                title=entry.title or None,
                description=f"{entry.num_pages} pages",
                mime_type=resources.MIME_TYPE,
            )
            for entry in entries
        ]
        return types.ListResourcesResult(resources=listed, next_cursor=following or None)

    async def list_templates(
        self, ctx: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        known = {
            resources.PAGE_TEMPLATE: ("page", "The text of a document's page; n is physical, from 1."),
            resources.DOCUMENT_TEMPLATE: ("document", "A document's table of contents; id as list_documents has it."),
        }
        return types.ListResourceTemplatesResult(
            resource_templates=[
                types.ResourceTemplate(uri_template=uri, name=name, description=words, mime_type=resources.MIME_TYPE)
                for uri, (name, words) in known.items()
            ]
        )

    async def read_resource(self, ctx: Context, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        uri, words = str(params.uri), Words(can_ingest=catalogue.INGEST.name in self._tools_for(ctx))
        try:
            text = await self._service(ctx).look(partial(resources.resource_text, uri=uri))
        except CtxError as error:
            said = words.told(self._of_empty(error, words))
            raise MCPError(types.INVALID_PARAMS, said, {"uri": uri}) from None
        except Exception as error:  # noqa: BLE001  as in a tool
            log_failure("mcp", "reading a resource", error)
            raise MCPError(types.INTERNAL_ERROR, words.told(error), {"uri": uri}) from None
        contents = types.TextResourceContents(uri=uri, mime_type=resources.MIME_TYPE, text=text)
        return types.ReadResourceResult(contents=[contents])

    def _service(self, ctx: Context) -> Service:
        """What works on the index as whoever asks may see it."""
        caller = _caller(ctx)
        return self._toolbox.service if caller is None else self._toolbox.service.acting_as(caller)

    def _tools_for(self, ctx: Context) -> dict[str, Tool]:
        """Only the owner may add documents and experiences, whatever was allowed at the start."""
        return self._tools if _is_owner(ctx) else {tool.name: tool for tool in _FOR_ALL}

    def _described(self, tool: Tool) -> types.Tool:
        words = tool.words
        if tool is catalogue.INGEST and self._toolbox.ingest is not None:
            words = f"{words} {self._toolbox.ingest.words}."
        return types.Tool(
            name=tool.name,
            title=tool.title,
            description=words,
            input_schema=self._schemas[tool.name],
            output_schema=dict(tool.output) if tool.output is not None else None,
            annotations=types.ToolAnnotations(
                title=tool.title,
                read_only_hint=tool.read_only,
                destructive_hint=False,
                idempotent_hint=True,
                open_world_hint=False,
            ),
        )

    async def _run(self, tool: Tool, values: dict[str, Any], words: Words, ctx: Context) -> Reply:
        if tool.run is None:
            return await self._ingest(values["paths"], ctx)
        service, caller = self._service(ctx), _caller(ctx)
        request = values.get("request")
        if tool.needs != "documents" or (request and request.types):  # ask with types has other things to cite, too
            more: dict[str, Any] = {"tenant": caller.tenant if caller else ""}
            if tool.needs == "turns":
                more["maker"] = self._toolbox.turns.acting_as(caller) if caller else self._toolbox.turns
            return await service.anyway(partial(_told, tool.run, values | more), question=tool.is_question)
        # A picture without a question is only looked up.
        asks = tool.is_question and (request or values.get("question")) is not None
        return await (service.asked if asks else service.look)(partial(_on_index, tool.run, values, words))

    async def _ingest(self, paths: tuple[str, ...], ctx: Context) -> Reply:
        """In a thread of its own; what it says of its progress is passed on now and then."""
        door = self._toolbox.ingest
        assert door is not None
        ingest = Ingest(door, await to_thread.run_sync(allowed_paths, paths, door))
        self._toolbox.remember(ingest)
        said: list[str] = []
        try:
            async with anyio.create_task_group() as group:
                group.start_soon(_report, ctx, said)
                summary = await to_thread.run_sync(ingest.run, said.append, abandon_on_cancel=True)
                group.cancel_scope.cancel()
        except BaseExceptionGroup as failures:
            raise failures.exceptions[0] from None
        finally:
            ingest.stop()
        return ingest_reply(summary)

    def _of_empty(self, error: CtxError, words: Words) -> CtxError:
        """The same, unless it tells that the index is empty or missing, and where it would be."""
        if not isinstance(error, NothingFoundError):
            return error
        return words.empty() if error.message == self._toolbox.service.index.nothing_found().message else error


def _on_index(run: Callable[..., Reply], values: dict[str, Any], words: Words, index: Index) -> Reply:
    if index.documents.totals()[1] == 0:
        raise words.empty()
    return run(index, **values)


def _told(run: Callable[..., Reply], values: dict[str, Any], index: Index) -> Reply:
    return run(index, **values)


async def _report(ctx: Context, said: list[str]) -> None:
    """Tell the client how far it is, if it wants to know: whenever there is something new, with a growing number."""
    told = 0
    while True:
        await anyio.sleep(_PROGRESS_SECONDS)
        if len(said) > told:
            told = len(said)
            await ctx.session.report_progress(float(told), None, said[-1])


def _named(tools: dict[str, Tool], name: str) -> Tool:
    if name not in tools:
        raise UsageError(f"there is no tool {quoted(name)}", hint=f"tools: {', '.join(tools)}")
    return tools[name]


def _is_owner(ctx: Context) -> bool:
    caller = _caller(ctx)
    return caller is None or caller.owner


def _caller(ctx: Context) -> Principal | None:
    """Who asks, as the guard says; None over pipes, where it is the user who started us. Over HTTP without a guard
    nobody is known, and sees nothing."""
    if ctx.request is None:
        return None
    caller = ctx.request.scope.get("state", {}).get("caller")
    return caller if isinstance(caller, Principal) else Principal("", "nobody")


def _client_name(ctx: Context) -> str:
    """As the client calls itself, in the handshake or in the header of its request."""
    params = ctx.session.client_params
    if params is not None:
        return params.client_info.name
    return product_of(ctx.request.headers.get("user-agent", "")) if ctx.request is not None else ""


def _result(reply: Reply, text_in: TextIn) -> types.CallToolResult:
    result = shown(reply, text_in)
    content: list[types.ContentBlock] = [types.TextContent(type="text", text=result.text)]
    if reply.picture is not None:
        data = base64.b64encode(reply.picture.data).decode()
        content.append(types.ImageContent(type="image", data=data, mime_type=reply.picture.mime_type))
    return types.CallToolResult(content=content, structured_content=result.structured)


def _error(text: str) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(type="text", text=text)], is_error=True)
