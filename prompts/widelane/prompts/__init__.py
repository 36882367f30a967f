"""Prompts and `.claude/` surfaces: Markdown sources next to the code, values from facts and policy."""
