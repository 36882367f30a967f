"""The metadata server of one VM: its tree, tokens and guest attributes."""

from __future__ import annotations

import hashlib
import json
import re
import secrets

from widelane.simcloud.records import Instance, Json
from widelane.simcloud.views import project_number, service_account
from widelane.simcloud.world import World

TOKEN_SECONDS = 3600.0
GUEST_VALUE_MAX = 256 * 1024

Leaf = str | int | list[str]
Tree = dict[str, "Tree | Leaf"]


def tree(world: World, it: Instance) -> Tree:
    """Everything under /computeMetadata/v1, but tokens and guest attributes."""
    number = project_number(world)
    project = world.scenario.project
    scheduling = it.scheduling
    attributes: Tree = dict(it.metadata.items())
    own: Tree = {
        "attributes": attributes,
        "cpu-platform": "Simulated",
        "hostname": f"{it.name}.{it.zone}.c.{project}.internal",
        "id": int(it.id),
        "machine-type": f"projects/{number}/machineTypes/{it.machine_type}",
        "maintenance-event": "NONE",
        "name": it.name,
        "preempted": "TRUE" if it.preempted else "FALSE",
        "scheduling": {
            "automatic-restart": "TRUE" if scheduling.get("automaticRestart") else "FALSE",
            "on-host-maintenance": str(scheduling.get("onHostMaintenance", "MIGRATE")),
            "preemptible": "TRUE" if it.model == "SPOT" else "FALSE",
        },
        "service-accounts": _accounts(world, it),
        "zone": f"projects/{number}/zones/{it.zone}",
    }
    return {
        "instance": own,
        "project": {"attributes": {}, "numeric-project-id": int(number), "project-id": project},
    }


def _accounts(world: World, it: Instance) -> Tree:
    found = account(world, it)
    if found is None:
        return {}
    email, scopes = found
    entry: Tree = {"aliases": ["default"], "email": email, "scopes": scopes}
    return {"default": entry, email: entry}


def account(world: World, it: Instance) -> tuple[str, list[str]] | None:
    """E-mail and scopes of the VM's service account; None when it was made without one."""
    given: list[Json] = it.body.get("serviceAccounts", [])
    if not given:
        return None
    email = str(given[0].get("email", "default"))
    return service_account(world) if email == "default" else email, list(given[0].get("scopes", ()))


def issue_token(world: World, it: Instance) -> Json:
    """An access token that the API takes, with the seconds that are left of it; kept until it is old."""
    now = world.now()
    for token, expires in it.tokens.items():
        if expires - now > TOKEN_SECONDS / 10:
            return {"access_token": token, "expires_in": int(expires - now), "token_type": "Bearer"}
    token = f"ya29.sim-{it.id}-{secrets.token_urlsafe(16)}"
    it.tokens = {**{old: end for old, end in it.tokens.items() if end > now}, token: now + TOKEN_SECONDS}
    world.state.save(it)
    world.state.commit()
    return {"access_token": token, "expires_in": int(TOKEN_SECONDS), "token_type": "Bearer"}


def holder(world: World, token: str) -> Instance | None:
    """The VM that a token was given to; None for an unknown or expired one."""
    for it in world.state.instances.values():
        if it.tokens.get(token, 0.0) > world.now():
            return it
    return None


def guest_attributes_on(it: Instance) -> bool:
    """Guest attributes exist only for instances with enable-guest-attributes=TRUE in their metadata."""
    return it.metadata.get("enable-guest-attributes", "").upper() in {"TRUE", "1", "Y", "YES"}


def set_guest_attribute(world: World, it: Instance, namespace: str, key: str, value: str | None) -> None:
    """Store one, or remove it (None); durable on return."""
    pairs = it.guest_attributes.setdefault(namespace, {})
    if value is None:
        pairs.pop(key, None)
    else:
        pairs[key] = value
    world.state.save(it)
    world.state.commit()


def look(root: Tree, path: str) -> Tree | Leaf | None:
    """What stands at a path; None when nothing does."""
    node: Tree | Leaf | None = root
    for step in filter(None, path.split("/")):
        node = node.get(step) if isinstance(node, dict) else None
    return node


def as_text(node: Tree | Leaf) -> str:
    """A value, or the listing of a directory."""
    if isinstance(node, dict):
        return "".join(f"{name}/\n" if isinstance(node[name], dict) else f"{name}\n" for name in sorted(node))
    return "".join(f"{line}\n" for line in node) if isinstance(node, list) else str(node)


def as_json(node: Tree | Leaf, *, verbatim: bool = False) -> str:
    """`recursive=true` or `alt=json`: keys in camel case, but those of attributes."""
    return json.dumps(_camel(node, verbatim))


def etag(text: str) -> str:
    """Changes with the text."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _camel(node: Tree | Leaf, verbatim: bool) -> Json | Leaf:
    if not isinstance(node, dict):
        return node
    renamed: Json = {}
    for name, value in node.items():
        plain = verbatim or "@" in name
        shown = name if plain else re.sub(r"-(\w)", lambda found: found[1].upper(), name)
        renamed[shown] = _camel(value, verbatim or name == "attributes")
    return renamed
