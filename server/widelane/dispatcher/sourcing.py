"""Publishes the code that a plan's phases run."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path, PurePosixPath

from widelane.dispatcher.edge import RUN_FOLDERS
from widelane.errors import InputError
from widelane.models.plan import ParsedPlan, Source
from widelane.store import Store, fetch_git, publish_source

_PLACEHOLDER = re.compile(r"\{[A-Za-z_][A-Za-z0-9_]*\}")


def publish_sources(store: Store, parsed: ParsedPlan) -> dict[str, str]:
    """Digest of each phase's source archive by phase name; the archives are then in the store.

    Those of phases that a run leaves out count too: the units of the phases before are known by them.

    Raises:
        InputError: a folder that isn't there, or a plan without a folder to start from.
        StoreError: git or the store can't do it.
    """
    published: dict[Source, str] = {}
    found: dict[str, str] = {}
    for phase in parsed.plan.phases:
        if phase.source is None or (phase.source.path is None and phase.source.git is None):
            continue
        if phase.source not in published:
            published[phase.source] = _publish(store, phase.source, parsed)
        found[phase.name] = published[phase.source]
    return found


def _publish(store: Store, source: Source, parsed: ParsedPlan) -> str:
    if source.git is not None:
        with tempfile.TemporaryDirectory(prefix="widelane-source-") as folder:
            fetch_git(source.git, source.rev or "HEAD", Path(folder))
            return publish_source(store, Path(folder)).sha256
    base = Path(parsed.folder or ".")
    folder_path = (base / (source.path or ".")).expanduser()
    if not folder_path.is_dir():
        raise InputError(
            f"{parsed.origin}: source {folder_path} isn't a folder",
            hint="`source: {path: DIR}` starts from the plan's own folder",
            code="no_source",
        )
    return publish_source(store, folder_path, _left_out(folder_path, parsed)).sha256


def _left_out(folder: Path, parsed: ParsedPlan) -> list[str]:
    """The plan itself and everything that its phases make, pulled or not, so that neither changes the digest."""
    patterns = [
        (PurePosixPath(phase.workdir or "") / _PLACEHOLDER.sub("*", output)).as_posix()
        for phase in parsed.plan.phases
        for output in (*phase.outputs, *phase.merge_outputs, *(o for arm in phase.arms for o in arm.outputs))
    ]
    patterns.append(RUN_FOLDERS)
    plan = Path(parsed.origin)
    if plan.is_file() and plan.resolve().is_relative_to(folder.resolve()):
        patterns.append(plan.resolve().relative_to(folder.resolve()).as_posix())
    return patterns
