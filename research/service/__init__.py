"""An open index for programs, agents and browsers: HTTP, MCP and a web page. Nobody else in research knows it."""
