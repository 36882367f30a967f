"""The methods of the REST subset, one function each, and their routes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from starlette.routing import Route

from widelane.simcloud import actions, refusals, views
from widelane.simcloud.api import Api, Call
from widelane.simcloud.filters import compile_filter, page
from widelane.simcloud.metadata import guest_attributes_on
from widelane.simcloud.records import Instance, Json, Operation
from widelane.simcloud.scenario import Method
from widelane.simcloud.world import World


def routes(api: Api) -> list[Route]:
    """Every route of the subset."""
    zone, one = "/zones/{zone}", "/zones/{zone}/instances/{name}"
    operation = "/zones/{zone}/operations/{name}"
    return [
        api.route("POST", f"{zone}/instances", Method.INSERT, insert),
        api.route("GET", f"{zone}/instances", Method.LIST, list_instances),
        api.route("GET", "/aggregated/instances", Method.AGGREGATED, aggregated),
        api.route("GET", one, Method.GET, get),
        api.route("DELETE", one, Method.DELETE, delete),
        api.route("POST", f"{one}/stop", Method.STOP, stop),
        api.route("POST", f"{one}/setLabels", Method.LABELS, set_labels),
        api.route("GET", f"{one}/getGuestAttributes", Method.GUEST_ATTRIBUTES, guest_attributes),
        api.route("GET", f"{one}/serialPort", Method.SERIAL, serial),
        api.route("GET", operation, Method.OPERATION, get_operation),
        api.route("POST", f"{operation}/wait", Method.WAIT, get_operation),
        api.route("GET", f"{zone}/operations", Method.OPERATIONS, list_operations),
        api.route("GET", "/regions", Method.REGION, list_regions),
        api.route("GET", "/regions/{region}", Method.REGION, get_region),
        api.route("GET", "", Method.PROJECT, get_project),
        api.route("GET", "/zones", Method.ZONE, list_zones),
        api.route("GET", zone, Method.ZONE, get_zone),
        api.route("GET", f"{zone}/machineTypes", Method.MACHINE_TYPE, list_machine_types),
        api.route("GET", f"{zone}/machineTypes/{{name}}", Method.MACHINE_TYPE, get_machine_type),
    ]


def insert(world: World, call: Call) -> Json:
    """instances.insert."""
    made = actions.insert(world, call.zone, call.body, call.request_id, user=call.user, outcome=call.outcome)
    return views.operation(world, made)


def get(world: World, call: Call) -> Json:
    """instances.get."""
    return views.instance(world, find(world, call))


def delete(world: World, call: Call) -> Json:
    """instances.delete; a repeated request id answers also when the instance is gone."""
    known = world.state.requests.get(call.request_id)
    if known is not None:
        return views.operation(world, world.state.operations[known])
    return views.operation(world, actions.delete(world, find(world, call), call.request_id, call.user))


def stop(world: World, call: Call) -> Json:
    """instances.stop."""
    return views.operation(world, actions.stop(world, find(world, call), call.request_id, call.user))


def set_labels(world: World, call: Call) -> Json:
    """instances.setLabels."""
    made = actions.set_labels(world, find(world, call), call.body, call.request_id, call.user)
    return views.operation(world, made)


def guest_attributes(world: World, call: Call) -> Json:
    """instances.getGuestAttributes, by queryPath (namespace/ or namespace/key) or variableKey."""
    it = find(world, call)
    asked = call.params.get("variableKey") or call.params.get("queryPath", "")
    namespace, _, key = asked.partition("/")
    items = [
        {"namespace": space, "key": name, "value": value}
        for space, pairs in sorted(it.guest_attributes.items())
        for name, value in sorted(pairs.items())
        if namespace in {"", space} and key in {"", name}
    ]
    if not guest_attributes_on(it) or not items:
        raise refusals.not_found(f"{world.path(it.zone, it.name)}/guestAttributes/{asked}")
    shown: Json = {"kind": "compute#guestAttributes", "queryPath": asked, "queryValue": {"items": items}}
    if call.params.get("variableKey"):
        shown |= {"variableKey": asked, "variableValue": items[0]["value"]}
    return shown


def serial(world: World, call: Call) -> Json:
    """instances.getSerialPortOutput; `start` is a byte offset."""
    text = world.machines.serial(find(world, call)).encode()
    asked = call.params.get("start") or "0"
    if not asked.isdecimal():
        raise refusals.invalid("start", asked, "Must be a byte offset.")
    start = int(asked)
    contents = text[start:].decode(errors="replace")
    return {"kind": "compute#serialPortOutput", "contents": contents, "start": str(start), "next": str(len(text))}


def list_instances(world: World, call: Call) -> Json:
    """instances.list."""
    shown, token = _page(_instances(world, call, call.zone), call)
    path = f"projects/{world.scenario.project}/zones/{call.zone}/instances"
    return views.listing("instanceList", path, [body for _, body in shown], token)


def aggregated(world: World, call: Call) -> Json:
    """instances.aggregatedList: every zone, the empty ones with the service's warning."""
    shown, token = _page(_instances(world, call, None), call)
    items: Json = {}
    for zone in world.atlas.zones:
        found = [body for key, body in shown if key.startswith(f"{zone}/")]
        items[f"zones/{zone}"] = {"instances": found} if found else _empty(zone)
    return views.listing(
        "instanceAggregatedList", f"projects/{world.scenario.project}/aggregated/instances", items, token
    )


def get_operation(world: World, call: Call) -> Json:
    """zoneOperations.get and .wait."""
    found = world.state.operations.get(call.at["name"])
    if found is None or found.zone != call.zone:
        raise refusals.not_found(f"projects/{world.scenario.project}/zones/{call.zone}/operations/{call.at['name']}")
    return views.operation(world, found)


def list_operations(world: World, call: Call) -> Json:
    """zoneOperations.list."""
    keep = compile_filter(call.params.get("filter", ""))
    found: list[Operation] = [each for each in world.state.operations.values() if each.zone == call.zone]
    rows = [(each.id, views.operation(world, each)) for each in sorted(found, key=lambda each: each.id)]
    shown, token = _page([row for row in rows if keep(row[1])], call)
    path = f"projects/{world.scenario.project}/zones/{call.zone}/operations"
    return views.listing("operationList", path, [body for _, body in shown], token)


def get_region(world: World, call: Call) -> Json:
    """regions.get."""
    name = call.at["region"]
    if name not in world.atlas.regions:
        raise refusals.not_found(f"projects/{world.scenario.project}/regions/{name}")
    return views.region(world, name)


def list_regions(world: World, call: Call) -> Json:
    """regions.list."""
    return _named(world, call, "region", ((name, views.region(world, name)) for name in world.atlas.regions))


def get_project(world: World, _call: Call) -> Json:
    """projects.get."""
    return views.project(world)


def get_zone(world: World, call: Call) -> Json:
    """zones.get."""
    return views.zone(world, call.zone)


def list_zones(world: World, call: Call) -> Json:
    """zones.list."""
    return _named(world, call, "zone", ((name, views.zone(world, name)) for name in world.atlas.zones))


def get_machine_type(world: World, call: Call) -> Json:
    """machineTypes.get."""
    row = world.atlas.find(call.zone, call.at["name"])
    if row is None:
        path = f"projects/{world.scenario.project}/zones/{call.zone}/machineTypes/{call.at['name']}"
        raise refusals.not_found(path)
    return views.machine_type(world, call.zone, row)


def list_machine_types(world: World, call: Call) -> Json:
    """machineTypes.list."""
    rows = world.atlas.in_zone(call.zone)
    shown = ((row.name, views.machine_type(world, call.zone, row)) for row in rows)
    return _named(world, call, "machineType", shown)


def find(world: World, call: Call) -> Instance:
    """The instance that the path names. Raises Refused."""
    it = world.state.instances.get(f"{call.zone}/{call.at['name']}")
    if it is None:
        raise refusals.not_found(world.path(call.zone, call.at["name"]))
    return it


def _instances(world: World, call: Call, zone: str | None) -> list[tuple[str, Json]]:
    keep = compile_filter(call.params.get("filter", ""))
    chosen = (each for each in world.state.instances.values() if zone in {None, each.zone})
    rows = [(each.key, views.instance(world, each)) for each in chosen]
    return sorted((row for row in rows if keep(row[1])), key=lambda row: row[0])


def _page(rows: Sequence[tuple[str, Json]], call: Call) -> tuple[list[tuple[str, Json]], str | None]:
    return page(rows, lambda row: row[0], dict(call.params))


def _named(world: World, call: Call, kind: str, rows: Iterable[tuple[str, Json]]) -> Json:
    keep = compile_filter(call.params.get("filter", ""))
    shown, token = _page([row for row in rows if keep(row[1])], call)
    where = f"/zones/{call.zone}" if call.zone else ""
    path = f"projects/{world.scenario.project}{where}/{kind}s"
    return views.listing(f"{kind}List", path, [body for _, body in shown], token)


def _empty(zone: str) -> Json:
    data = [{"key": "scope", "value": f"zones/{zone}"}]
    message = f"There are no results for scope 'zones/{zone}' on this page."
    return {"warning": {"code": "NO_RESULTS_ON_PAGE", "message": message, "data": data}}
