"""One file per tool: its input, its answer, one function. The MCP server and the command line share them."""
