"""Builds the runner file: everything under `host/` as one zipapp, the same bytes from the same sources."""

from __future__ import annotations

import hashlib
import io
import zipfile
from importlib import resources

PACKAGE = "widelane_host"
_SHEBANG = b"#!/usr/bin/env python3\n"
_ENTRY = f"import sys\n\nfrom {PACKAGE}.__main__ import main\n\nsys.exit(main(sys.argv[1:]))\n"
_EPOCH = (1980, 1, 1, 0, 0, 0)


def build() -> bytes:
    """The runner file. Stored, not deflated, since compressors differ between Python builds."""
    sources = {"__main__.py": _ENTRY.encode()}
    pending = [(PACKAGE, resources.files("widelane.runner.host"))]
    while pending:
        name, folder = pending.pop()
        for item in folder.iterdir():
            if item.name.endswith(".py"):
                sources[f"{name}/{item.name}"] = item.read_bytes()
            elif item.is_dir() and item.name.isidentifier() and not item.name.startswith("__"):
                pending.append((f"{name}/{item.name}", item))
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_STORED) as target:
        for name in sorted(sources):
            info = zipfile.ZipInfo(name, _EPOCH)
            info.create_system = 3
            info.external_attr = 0o644 << 16
            target.writestr(info, sources[name])
    return _SHEBANG + archive.getvalue()


def digest(data: bytes) -> str:
    """The name of a runner file: its SHA-256 in hex."""
    return hashlib.sha256(data).hexdigest()
