"""Tools for agents, over MCP: `tools` and `tasks` are plain functions on an `Index`, which `tool` makes tools of;
`results` holds what they say to its tokens; only `server` and `mount` know the SDK."""
