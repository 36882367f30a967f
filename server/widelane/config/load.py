"""Finds widelane.toml, reads it with the environment, and freezes both into Settings."""

from __future__ import annotations

import os
import pwd
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from widelane.config.keys import ROOT, SECTIONS, Section
from widelane.config.settings import Settings
from widelane.config.values import Table, dotted, read_section, shown, unknown
from widelane.errors import ConfigError

FILE = "widelane.toml"
_SIZE_LIMIT = 1024 * 1024
_AT = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)$")


def load(cwd: Path, env: Mapping[str, str], sim: str | None = None) -> Settings:
    """The settings for a working folder and environment.

    The first widelane.toml counts: of `cwd`, of its parents, of the user's configuration folder. With `sim`, the URL
    of a simulated cloud, no real lane is left. Raises ConfigError with everything that is wrong in the file.
    """
    file = _find(cwd, env)
    values = {} if file is None else _read(file)
    settings = Settings(home=_home(cwd, env), file=file, **values)
    if sim is None:
        return settings
    if not sim.startswith(("http://", "https://")):
        raise ConfigError(f"{shown(sim)} is not the URL of a simulated cloud", hint="it begins with http://")
    return settings.simulated(sim.rstrip("/"))


def _user_home(env: Mapping[str, str]) -> Path:
    return Path(env.get("HOME") or pwd.getpwuid(os.getuid()).pw_dir)


def _xdg(env: Mapping[str, str], name: str, default: str) -> Path:
    """An XDG base folder; a relative one is to be ignored, says its specification."""
    given = Path(env.get(name, ""))
    return given if given.is_absolute() else _user_home(env) / default


def _home(cwd: Path, env: Mapping[str, str]) -> Path:
    given = env.get("WIDELANE_HOME", "")
    if not given:
        return _xdg(env, "XDG_STATE_HOME", ".local/state") / "widelane"
    if "\x00" in given or "\n" in given:
        raise ConfigError("WIDELANE_HOME is not the path of a folder", hint="name a folder that you can write to")
    if given == "~" or given.startswith("~/"):
        return _user_home(env) / given[2:]
    return cwd / given


def _find(cwd: Path, env: Mapping[str, str]) -> Path | None:
    for folder in (cwd, *cwd.parents):
        file = folder / FILE
        if file.is_file():
            _check_owner(file, cwd)
            return file
    file = _xdg(env, "XDG_CONFIG_HOME", ".config") / "widelane" / FILE
    return file if file.is_file() else None


def _check_owner(file: Path, cwd: Path) -> None:
    """A file above the working folder is trusted when this user, root or the folder's owner put it there.

    It can name a command to run, and folders such as /tmp are open to anyone.
    """
    if file.parent != cwd and file.stat().st_uid not in (os.getuid(), 0, cwd.stat().st_uid):
        raise ConfigError(f"{file} belongs to another user", hint=f"copy it to {cwd} if you trust it")


def _read(file: Path) -> dict[str, Any]:
    document = _document(file)
    problems: list[str] = []
    values = _settings_values(document, problems)
    if problems:
        raise ConfigError("\n".join(f"{file}: {problem}" for problem in problems))
    return values


def _document(file: Path) -> Table:
    text = _text(file)
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{file}{_place(error, text)}: this isn't TOML: {_AT.sub('', str(error))}") from None
    except RecursionError:
        raise ConfigError(f"{file}: this isn't TOML: it is nested too deep") from None


def _text(file: Path) -> str:
    try:
        with file.open("rb") as stream:
            data = stream.read(_SIZE_LIMIT + 1)
    except OSError as error:
        raise ConfigError(f"{file} can't be read: {error.strerror}") from None
    if len(data) > _SIZE_LIMIT:
        raise ConfigError(f"{file} has more than {_SIZE_LIMIT // 1024} KiB", hint="it isn't a configuration")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigError(f"{file} isn't UTF-8 text: byte {error.start + 1}", hint="save it as UTF-8") from None


def _place(error: tomllib.TOMLDecodeError, text: str) -> str:
    """`:LINE:COLUMN` of what tomllib tells in words."""
    at = _AT.search(str(error))
    if at is None:
        return ""
    if at[1]:
        return f":{at[1]}:{at[2]}"
    lines = text.rstrip("\n").split("\n")
    return f":{len(lines)}:{len(lines[-1]) + 1}"


def _settings_values(document: Table, problems: list[str]) -> dict[str, Any]:
    lanes = tuple(section for section in SECTIONS if section.path[0] == "lanes")
    others = tuple(section for section in SECTIONS if section.path[0] != "lanes")
    top = {name: value for name, value in document.items() if name in ROOT.keys}
    values = read_section(ROOT, top, (), problems)
    known = (*ROOT.keys, "lanes", *(section.path[0] for section in others))
    problems.extend(unknown((), name, known) for name in document if name not in known)
    for section in others:
        if section.path[0] in document:
            values[section.path[0]] = _section(section, document[section.path[0]], problems)
    found = _table(document.get("lanes", {}), ("lanes",), problems)
    names = tuple(section.path[1] for section in lanes)
    problems.extend(unknown(("lanes",), name, names) for name in found if name not in names)
    for section in lanes:
        if section.path[1] in found:
            values[section.path[1]] = _section(section, found[section.path[1]], problems)
    _flatten(values)
    return values


def _table(value: object, path: tuple[str, ...], problems: list[str]) -> Table:
    if isinstance(value, dict):
        return cast("Table", value)
    problems.append(f"{dotted(*path)} wants a table; found {shown(value)}: write [{dotted(*path)}]")
    return {}


def _section(section: Section, value: object, problems: list[str]) -> Any:
    table = _table(value, section.path, problems)
    if section.named:
        rows: dict[str, Table] = {}
        for name, row in table.items():
            path = (*section.path, name)
            if not isinstance(row, dict):
                problems.append(f"{dotted(*path)} stands in no named section: write [{section.title}] and choose NAME")
                continue
            found = cast("Table", row)
            rows[name] = found if section.free else read_section(section, found, path, problems)
        return rows
    return table if section.free else read_section(section, table, section.path, problems)


def _flatten(values: dict[str, Any]) -> None:
    """From the file's shape to the settings'."""
    disk = values.get("gcp", {}).pop("disk", {})
    if "type" in disk:
        values["gcp"]["disk_type"] = disk["type"]
    if "gib" in disk:
        values["gcp"]["disk_gib"] = disk["gib"]
    if not values.get("runpod", {}).pop("enabled", True):
        del values["runpod"]
