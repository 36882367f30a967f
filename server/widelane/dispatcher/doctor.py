"""Looks at everything that a dispatch needs, with reads alone, and says what to fix. Works without any network."""

from __future__ import annotations

import shutil
import sqlite3
import stat
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from urllib.parse import unquote, urlsplit

from widelane import config
from widelane.config import Settings
from widelane.dispatcher.locking import is_held
from widelane.dispatcher.places import default_store, journal_path, lock_path
from widelane.errors import ConfigError, TableError, WidelaneError
from widelane.facts import load_intents, load_policy
from widelane.lanes.checkup.examine import examine
from widelane.lanes.checkup.far.survey import folder
from widelane.lanes.checkup.sheet import Sheet
from widelane.models.checkup import CheckStatus, DoctorReport, SetupCheck
from widelane.store import open_store

MACHINE = "machine"
_LEAST_FREE_GIB = 1.0
_WORST = (CheckStatus.OK, CheckStatus.WARN, CheckStatus.FAIL)
_AT_ONCE = 8
_HERE = frozenset({"localhost", "127.0.0.1", "::1"})
_PROBE = "doctor/no-such-key"


def examine_setup(cwd: Path, env: Mapping[str, str], lanes: tuple[str, ...] = ()) -> DoctorReport:
    """Every check; with `lanes`, only those lanes beside the machine itself. Changes nothing, here or anywhere.

    Raises:
        ConfigError: one of `lanes` isn't configured.
    """
    sheet = Sheet(MACHINE)
    try:
        settings = config.load(cwd, env)
    except ConfigError as error:
        sheet.fail("configuration", error.message, error.hint or "docs/configuration.md has every key")
        return _report(sheet.checks)
    chosen = _chosen(settings, lanes)
    _configuration(sheet, settings)
    _home(sheet, settings.home)
    _store(sheet, settings)
    _ssh(sheet, settings)
    with ThreadPoolExecutor(max_workers=_AT_ONCE) as pool:
        found = pool.map(partial(examine, settings=settings, env=env), chosen)
        return _report([*sheet.checks, *(check for checks in found for check in checks)])


def _chosen(settings: Settings, lanes: tuple[str, ...]) -> tuple[str, ...]:
    """The lanes to look at; a kind stands for all of that kind."""
    unknown = [lane for lane in lanes if not any(_names(lane, known) for known in settings.lanes)]
    if unknown:
        known = ", ".join(settings.lanes) or "none"
        raise ConfigError(f"{', '.join(unknown)}: no such lane is configured", hint=f"configured: {known}")
    return tuple(known for known in settings.lanes if not lanes or any(_names(lane, known) for lane in lanes))


def _names(lane: str, known: str) -> bool:
    return lane in (known, known.partition(".")[0])


def _report(checks: list[SetupCheck]) -> DoctorReport:
    worst = max((_WORST.index(check.status) for check in checks), default=0)
    return DoctorReport(status=_WORST[worst], checks=tuple(checks))


def _configuration(sheet: Sheet, settings: Settings) -> None:
    file = settings.file or "no widelane.toml"
    try:
        load_policy(settings.policy, str(file))
        load_intents(settings.intents)
    except (TableError, ConfigError) as error:
        sheet.fail("configuration", error.message, error.hint or "docs/policy.md has every value and its bounds")
        return
    if settings.lanes:
        sheet.ok("configuration", f"{file}: lanes {', '.join(settings.lanes)}")
    else:
        sheet.warn("configuration", f"{file}: no lane is configured", "`widelane init` writes one, with comments")


def _home(sheet: Sheet, home: Path) -> None:
    """The folder of the journal: there or to be made, ours alone, with room, and a journal that can be read."""
    found = folder(home)
    if not found["usable"]:
        sheet.fail("home", f"{found['above']} can't be written to", "set WIDELANE_HOME to a folder that you can write")
        return
    free = found["free"] / 2**30
    mode = stat.S_IMODE(home.stat().st_mode) if found["there"] else 0o700
    if free < _LEAST_FREE_GIB:
        sheet.warn("home", f"{home}: {free:.1f} GiB are free", "free some space, or set WIDELANE_HOME elsewhere")
    elif mode & 0o022:
        sheet.warn("home", f"{home} can be written by others", f"chmod go-w {home}")
    else:
        state = "is there" if found["there"] else "will be made"
        held = ", a supervisor is at work" if is_held(lock_path(home)) else ""
        sheet.ok("home", f"{home} {state}, {free:.0f} GiB are free{held}")
    _journal(sheet, journal_path(home))


def _journal(sheet: Sheet, path: Path) -> None:
    """Read what is in the file itself: opening a journal the usual way would write beside it."""
    if not path.exists():
        sheet.ok("journal", "no run has been made yet")
        return
    try:
        db = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro&immutable=1", uri=True)
        try:
            count = db.execute("SELECT count(*) FROM run").fetchone()[0]
        finally:
            db.close()
    except sqlite3.Error as error:
        # What is still in the log beside the file isn't seen this way; a young journal may be there alone.
        if path.with_name(path.name + "-wal").exists():
            sheet.ok("journal", f"{path} is in use")
        else:
            sheet.fail("journal", f"{path}: {error}", f"move it away: mv {path} {path}.broken; runs in it are lost")
        return
    sheet.ok("journal", f"{count} runs, or more")


def _store(sheet: Sheet, settings: Settings) -> None:
    gcp = settings.gcp
    url = settings.store or default_store(settings.home).absolute().as_uri()
    if gcp is not None and gcp.bucket and not url.startswith("gs:"):
        _bucket(sheet, f"gs://{gcp.bucket}")
    if url.startswith("gs:"):
        _bucket(sheet, url)
        return
    try:
        open_store(url)
    except WidelaneError as error:
        sheet.fail("store", error.message, error.hint)
        return
    found = folder(Path(unquote(urlsplit(url).path)))
    if not found["usable"]:
        sheet.fail("store", f"{found['above']} can't be written to", "set store to a folder that you can write")
    else:
        sheet.ok("store", f"{url} {'is there' if found['there'] else 'will be made'}")


def _bucket(sheet: Sheet, url: str) -> None:
    """One read of a key that isn't there: it tells whether the bucket is, and whether we may read it."""
    try:
        open_store(url).list(_PROBE)
    except WidelaneError as error:
        sheet.fail("store", error.message, error.hint or "is the network up?")
    else:
        sheet.ok("store", f"{url} can be read")


def _ssh(sheet: Sheet, settings: Settings) -> None:
    hosts = [*settings.ssh.values(), *(cluster for cluster in settings.slurm.values() if cluster.host not in _HERE)]
    if not hosts:
        return
    if shutil.which("ssh") is None:
        sheet.fail("ssh", "ssh isn't installed", "install the OpenSSH client (package openssh-client)")
    else:
        sheet.ok("ssh", "the OpenSSH client is installed")
