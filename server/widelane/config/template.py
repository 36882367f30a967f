"""The commented widelane.toml that `widelane init` writes, made from the table of keys."""

from __future__ import annotations

from widelane.config.keys import ROOT, SECTIONS, Key, Section

_HEAD = """\
# widelane.toml: which lanes widelane may use, and where.
# The first one found counts: in the working folder, in its parents, then in the user's configuration folder.
# A lane is configured when its section is here: remove the # before [lanes...] and before the keys to set.
"""


def template() -> str:
    """Every section and key with what it means; all of them are commented out."""
    parts = [_HEAD, _keys(ROOT), *(f"# {section.doc}\n#[{section.title}]\n{_keys(section)}" for section in SECTIONS)]
    return "\n".join(parts)


def _keys(section: Section) -> str:
    return "".join(_key(name, key) for name, key in section.keys.items())


def _key(name: str, key: Key) -> str:
    rest = " Required." if key.required else f" Default: {key.default}." if key.default else ""
    return f"# {key.doc}{rest}\n#{name} = {key.example}\n"
