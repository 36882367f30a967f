"""What happens by itself as the clock goes on: queueing, booting, run limits, preemption, endings."""

from __future__ import annotations

from widelane.models.plan import ProvisioningModel
from widelane.simcloud import refusals
from widelane.simcloud.actions import begin_end, grant, stockout, system_operation
from widelane.simcloud.records import Ending, Instance, Status
from widelane.simcloud.scenario import ANY
from widelane.simcloud.world import World


def advance(world: World) -> None:
    """Bring every instance to the present and commit; start what must run, kill what must not.

    Each change is committed before the VM feels it, so that a server killed in between repeats the effect.
    """
    moved = True
    while moved:
        moved = False
        for instance in sorted(world.state.instances.values(), key=lambda each: (each.created, each.id)):
            while instance.key in world.state.instances and _step(world, instance, world.now()):
                moved = True
    world.state.commit()
    for instance in list(world.state.instances.values()):
        if instance.status is Status.RUNNING and instance.process is None:
            _start(world, instance)


def resume(world: World) -> None:
    """Take over what an earlier server left: its VMs live on, their metadata servers come back on their ports."""
    for instance in list(world.state.instances.values()):
        if instance.port:
            try:
                world.machines.open_port(instance.port)
            except OSError:
                _end_by_service(world, instance, Ending.HOST, world.now())
    advance(world)


def retire(world: World) -> bool:
    """Begin to end every live instance; whether none is left. Call again until it is so."""
    for instance in list(world.state.instances.values()):
        if instance.live and instance.status is not Status.STOPPING:
            ending = Ending.STOP if instance.status is Status.RUNNING else Ending.DELETE
            _end_by_service(world, instance, ending, world.now())
        elif instance.status is Status.STOPPING:
            instance.due = world.now()
    advance(world)
    return not any(instance.live for instance in world.state.instances.values())


def kill_all(world: World) -> bool:
    """Kill every VM and note nothing, for when there is no state left; whether none is left. Call again until so."""
    left = [instance for instance in world.state.instances.values() if not world.machines.kill(instance)]
    return not left


def busy(world: World) -> bool:
    """Whether any instance lives, or any operation is still to end."""
    state = world.state
    return any(each.live for each in state.instances.values()) or any(
        not each.done for each in state.operations.values()
    )


def next_due(world: World) -> float | None:
    """When something will happen by itself: simulated seconds, in the past when it waits for the host; None: never."""
    times = [time for instance in world.state.instances.values() for time in _times(instance)]
    return min(times, default=None)


def _times(instance: Instance) -> list[float]:
    given = [instance.due, instance.arrives, instance.expires] if instance.live else []
    if instance.status is Status.RUNNING:
        launching = 0.0 if instance.process is None else None
        given = [launching, instance.preempt_at, instance.kill_at, instance.ends_at]
    return [time for time in given if time is not None]


def _step(world: World, instance: Instance, now: float) -> bool:
    """One change at most; whether there was one."""
    step = {
        Status.PENDING: _queue,
        Status.PROVISIONING: _provision,
        Status.RUNNING: _run,
        Status.STOPPING: _end,
    }.get(instance.status)
    return step is not None and step(world, instance, now)


def _queue(world: World, instance: Instance, now: float) -> bool:
    expires = instance.expires if instance.expires is not None else now
    arrived = instance.arrives is not None and instance.arrives <= min(now, expires)
    if arrived:
        world.move_stock(instance.combination, 1)
        instance.arrives = None
    if world.available(instance.combination) > 0 and world.shortfall(instance) is None and (arrived or now < expires):
        grant(world, instance, now)
        instance.expires = instance.arrives = None
        world.state.save(instance)
        return True
    if now < expires:
        return False
    instance.refusal = stockout(world, instance)
    _refuse(world, instance, expires)
    return True


def _provision(world: World, instance: Instance, now: float) -> bool:
    if instance.due is None or now < instance.due:
        return False
    if instance.refusal is not None:
        _refuse(world, instance, instance.due)
        return True
    instance.started, instance.due = instance.due, None
    instance.status = Status.RUNNING
    instance.port = world.machines.open_port(0)
    instance.preempt_at = _preemption(world, instance, instance.started)
    world.finish(instance.insert_operation, instance.started)
    world.state.save(instance)
    return True


def _refuse(world: World, instance: Instance, at: float) -> None:
    world.finish(instance.insert_operation, at, instance.refusal)
    world.state.remove(instance)


def _preemption(world: World, instance: Instance, started: float) -> float | None:
    if instance.model is not ProvisioningModel.SPOT:
        return None
    for index, rule in enumerate(world.scenario.preempt):
        if rule.machine_type not in {ANY, instance.machine_type}:
            continue
        if rule.times is None or world.state.count(f"preempt/{index}") <= rule.times:
            return started + rule.after
    return None


def _start(world: World, instance: Instance) -> None:
    instance.process = world.machines.process(instance)
    if instance.process is None:
        world.machines.boot(instance, world.gpus(instance))
        return
    world.state.save(instance)
    world.state.commit()


def _run(world: World, instance: Instance, now: float) -> bool:
    far = float("inf")
    at = {
        "notice": far if instance.preempt_at is None else instance.preempt_at,
        "preempted": far if instance.kill_at is None else instance.kill_at,
        "limit": far if instance.ends_at is None else instance.ends_at,
    }
    first = min(at, key=lambda event: at[event])
    if at[first] > now:
        return _look(world, instance, now)
    if first == "notice":
        instance.preempted = True
        instance.preempt_at, instance.kill_at = None, at[first] + world.scenario.grace
        world.state.save(instance)
    elif first == "preempted":
        instance.kill_at = None
        instance.remove = instance.deletes_itself
        _end_by_service(world, instance, Ending.PREEMPTED, at[first])
    else:
        _end_by_service(world, instance, Ending.DELETE if instance.deletes_itself else Ending.STOP, at[first])
    return True


def _look(world: World, instance: Instance, now: float) -> bool:
    """Notice a VM that ended by itself, or that could not be started."""
    if instance.process is not None and not world.machines.alive(instance.process):
        _end_by_service(world, instance, Ending.GUEST, now)
        return True
    if instance.process is None and world.machines.failed(instance):
        _end_by_service(world, instance, Ending.HOST, now)
        return True
    return False


def _end_by_service(world: World, instance: Instance, ending: Ending, at: float) -> None:
    begin_end(world, instance, ending, at, system_operation(world, ending.value, instance))


def _end(world: World, instance: Instance, now: float) -> bool:
    if instance.due is not None and now < instance.due:
        return False
    world.state.commit()
    if not world.machines.kill(instance):
        return False
    path = world.path(instance.zone, instance.name)
    world.finish(instance.insert_operation, now, refusals.cancelled(path))
    for name in instance.end_operations:
        world.finish(name, now)
    if instance.granted and not instance.preempted:
        world.move_stock(instance.combination, 1)
    if instance.port:
        world.machines.close_port(instance.port)
    if instance.remove:
        world.state.remove(instance)
        world.machines.discard(instance)
    else:
        _rest(instance, now)
        world.state.save(instance)
    return True


def _rest(instance: Instance, now: float) -> None:
    """What a stopped instance no longer has."""
    instance.status = Status.TERMINATED
    instance.granted, instance.regional, instance.project_wide = False, {}, {}
    instance.due = instance.preempt_at = instance.kill_at = instance.process = instance.ending = None
    instance.end_operations = []
    instance.port, instance.tokens, instance.stopped = 0, {}, now
