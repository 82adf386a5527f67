"""Tools for agents, over MCP: what they are, what they say, and the two doors they are served through.

`tools` are plain functions on an `Index`; `budget` holds each result to its tokens; only `server` and `mount` know the
SDK. A further tool is a function in `tools` or beside it, and an entry in `catalogue`.
"""
