"""What each page is for, in a line; apart from the pages, so that listing them loads no table."""

from __future__ import annotations

PLANNER = "How to plan GPU work: axes, width, wall clock, commands that follow the realized width"
CRITIC = "Review the width of planned GPU work: two findings to revise on, never a smaller experiment"
LENSES = ("width", "work", "estimate")
"""Parts of what the engine can't see; the critic looks through one or all."""
