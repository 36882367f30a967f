"""Walks ladders, follows machines, lets them go. The journal is its only memory."""

from widelane.dispatcher.client import Client
from widelane.dispatcher.submission import SimTarget

__all__ = ["Client", "SimTarget"]
