"""Answers of providers that somebody pasted: brought to the form that a lane hears, and judged by its classifier."""
