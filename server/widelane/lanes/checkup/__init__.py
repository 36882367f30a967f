"""Looks at what a lane needs, with reads alone: nothing is created, written, started or deleted, here or there."""
