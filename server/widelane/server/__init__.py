"""The MCP surface: tools, prompts and resources over stdio. The only importer of `mcp`."""
