"""Walks ladders, follows machines, lets them go. The journal is its only memory."""
