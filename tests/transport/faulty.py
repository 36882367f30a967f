"""A program for hosts that doesn't do what it should."""

from __future__ import annotations

import os
from typing import Any

from widelane.transport.remote.frame import Call


def divide(call: Call) -> dict[str, Any]:
    return {"never": 1 // len(call.answers)}


def talk(call: Call) -> dict[str, Any]:
    os.write(1, b"noise on stdout\n")
    print("more noise")
    return {"said": call.request["words"]}


def vanish(call: Call) -> dict[str, Any]:
    os._exit(9)
