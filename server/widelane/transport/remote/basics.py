"""Calls that every user of a host needs: run a command, put a file, read files."""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
import subprocess
from typing import Any

from widelane.transport.remote.frame import Call
from widelane.transport.remote.places import place


def run(call: Call) -> dict[str, Any]:
    """Run a command without a shell. `returncode` is None when it was ended after `seconds`.

    Its whole process group is ended then. A program that isn't there has `missing` set.
    """
    asked = call.request
    try:
        process = subprocess.Popen(
            asked["argv"],
            cwd=place(asked["cwd"]) if asked.get("cwd") else None,
            env={**os.environ, **asked.get("env", {})},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
    except FileNotFoundError as error:
        return {"missing": str(error.filename), "returncode": None, "stdout": "", "stderr": ""}
    try:
        out, err = process.communicate(asked.get("stdin", "").encode(), timeout=asked["seconds"])
        code = process.returncode
    except subprocess.TimeoutExpired:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        out, err = process.communicate()
        code = None
    return {"missing": "", "returncode": code, "stdout": _text(out), "stderr": _text(err)}


def put(call: Call) -> dict[str, Any]:
    """Write the file that came with the call, whole or not at all; its SHA-256 must be the one that is told."""
    path = place(call.request["path"])
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    temp = path.with_name(f".tmp-{os.getpid()}-{secrets.token_hex(6)}")
    try:
        fd = os.open(temp, os.O_WRONLY | os.O_CREAT | os.O_EXCL, call.request["mode"])
        with os.fdopen(fd, "wb") as target:
            digest = call.receive(target)
            target.flush()
            os.fsync(target.fileno())
        if call.request["sha256"] not in ("", digest):
            raise OSError(5, f"has sha256 {digest}, not {call.request['sha256']}", str(path))
        temp.replace(path)
    finally:
        with contextlib.suppress(FileNotFoundError):
            temp.unlink()
    return {"sha256": digest, "path": str(path)}


def get(call: Call) -> dict[str, Any]:
    """Send files; `places` has for each path its place among the answer's files, None for what isn't there."""
    found: list[int | None] = []
    for name in call.request["paths"]:
        path = place(name)
        found.append(call.send(path) if path.is_file() else None)
    return {"places": found}


def remove(call: Call) -> dict[str, Any]:
    """Remove files; those that aren't there count as removed."""
    for name in call.request["paths"]:
        with contextlib.suppress(FileNotFoundError):
            place(name).unlink()
    return {}


def greet(call: Call) -> dict[str, Any]:
    """Who answers."""
    return {
        "user": os.environ.get("USER", ""),
        "home": str(place("~")),
        "host": os.uname().nodename,
    }


def _text(data: bytes) -> str:
    return data.decode("utf-8", errors="replace")
