"""What callers ask of the service: insert, delete, stop, set labels, preempt."""

from __future__ import annotations

from widelane.models.plan import ProvisioningModel
from widelane.simcloud import refusals
from widelane.simcloud.records import Ending, Instance, Json, Operation, Status
from widelane.simcloud.validate import Request, check_labels, check_request_id, insert_request
from widelane.simcloud.world import SYSTEM, World

CALLER = "caller@sim-project.example"


def insert(
    world: World, zone: str, body: object, request_id: str, *, user: str = CALLER, outcome: Json | None = None
) -> Operation:
    """Accept an insert, whatever comes of it.

    `outcome` dictates how the operation ends, as {"status", "errors"}. Raises Refused.
    """
    known = _known(world, request_id)
    if known is not None:
        return known
    request = insert_request(body, zone, world.atlas)
    if f"{zone}/{request.name}" in world.state.instances:
        raise refusals.already_exists(world.path(zone, request.name))
    instance = Instance(
        name=request.name,
        zone=zone,
        id=world.new_id(),
        machine_type=request.row.name,
        model=request.model,
        body=request.body,
        created=world.now(),
        insert_operation="",
        labels=request.labels,
    )
    operation = world.new_operation("insert", instance, request_id, user)
    instance.insert_operation = operation.name
    _decide(world, instance, request, outcome)
    world.state.save(instance)
    return operation


def _decide(world: World, instance: Instance, request: Request, outcome: Json | None) -> None:
    now = instance.created
    short = world.shortfall(instance)
    rule = world.scenario.rule_for(instance.combination)
    empty = world.available(instance.combination) <= 0
    if outcome is not None:
        instance.refusal = outcome
    elif request.wait and (short is not None or (empty and rule.pending)):
        instance.status = Status.PENDING
        instance.expires = now + request.wait
        instance.arrives = now + rule.arrives_after if rule.arrives_after is not None and empty else None
    elif short is not None:
        instance.refusal = refusals.quota_exceeded(short)
    elif empty:
        instance.refusal = stockout(world, instance)
    else:
        grant(world, instance, now)
    if instance.refusal is not None:
        instance.due = now + world.scenario.operation


def stockout(world: World, instance: Instance) -> Json:
    """How an insert ends that found no stock."""
    wanted = instance.combination
    row = world.atlas.machine_types[wanted.machine_type]
    return refusals.stockout(world.scenario.project, wanted, row, world.elsewhere(wanted))


def grant(world: World, instance: Instance, at: float) -> None:
    """Give an instance its stock and quota; it boots from `at`."""
    world.move_stock(instance.combination, -1)
    instance.granted = True
    instance.regional, instance.project_wide = world.needs(instance)
    instance.status = Status.PROVISIONING
    instance.due = at + world.scenario.boot


def delete(world: World, instance: Instance, request_id: str, user: str = CALLER) -> Operation:
    """Begin to delete; also cancels a queued flex-start request."""
    return _end(world, instance, Ending.DELETE, request_id, user)


def stop(world: World, instance: Instance, request_id: str, user: str = CALLER) -> Operation:
    """Begin to stop a running instance. Raises Refused when it doesn't run."""
    if instance.status not in {Status.RUNNING, Status.STOPPING, Status.TERMINATED}:
        path = world.path(instance.zone, instance.name)
        raise refusals.http(400, f"The resource '{path}' is not ready", "resourceNotReady")
    return _end(world, instance, Ending.STOP, request_id, user)


def _end(world: World, instance: Instance, ending: Ending, request_id: str, user: str) -> Operation:
    known = _known(world, request_id)
    if known is not None:
        return known
    operation = world.new_operation(ending.value, instance, request_id, user)
    if ending is Ending.STOP and instance.status is Status.TERMINATED:
        world.finish(operation.name, world.now())
        return operation
    begin_end(world, instance, ending, world.now() + world.scenario.operation, operation)
    return operation


def begin_end(world: World, instance: Instance, ending: Ending, due: float, operation: Operation) -> None:
    """From now on the instance is STOPPING; at `due` its VM is killed. A delete wins over everything before it."""
    if instance.status is not Status.STOPPING:
        instance.due = due
    instance.status = Status.STOPPING
    instance.ending = ending if instance.ending is None or ending is Ending.DELETE else instance.ending
    instance.remove = instance.remove or ending is Ending.DELETE
    instance.end_operations.append(operation.name)
    world.state.save(instance)


def set_labels(world: World, instance: Instance, body: Json, request_id: str, user: str = CALLER) -> Operation:
    """Replace the labels. Raises Refused when the fingerprint isn't the current one."""
    known = _known(world, request_id)
    if known is not None:
        return known
    if body.get("labelFingerprint") != label_fingerprint(instance):
        raise refusals.http(412, "Labels fingerprint either invalid or resource labels have changed", "conditionNotMet")
    instance.labels = check_labels(body.get("labels"))
    instance.label_version += 1
    world.state.save(instance)
    operation = world.new_operation("setLabels", instance, request_id, user)
    world.finish(operation.name, world.now())
    return operation


def label_fingerprint(instance: Instance) -> str:
    """Changes with every change of labels."""
    return f"v{instance.label_version:07d}="


def preempt(world: World, instance: Instance) -> None:
    """Give a running spot VM its notice now. Raises Refused for anything else."""
    if instance.model is not ProvisioningModel.SPOT or instance.status is not Status.RUNNING:
        raise refusals.bad_request(f"{instance.name} isn't a running SPOT VM.")
    if not instance.preempted:
        instance.preempt_at = world.now()
        world.state.save(instance)


def system_operation(world: World, kind: str, instance: Instance) -> Operation:
    """An operation that nobody asked for."""
    return world.new_operation(kind, instance, user=SYSTEM)


def _known(world: World, request_id: str) -> Operation | None:
    if not request_id:
        return None
    check_request_id(request_id)
    name = world.state.requests.get(request_id)
    return None if name is None else world.state.operations[name]
