"""Findings about commands: axes that they don't name, words that only a shell would understand, counts that clash."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from widelane.models.nearest import nearest
from widelane.models.verdict import Finding, FindingCode
from widelane.router.commands import DEVICES, CommandFacts, read_command
from widelane.router.phase_case import PhaseCase, reachable
from widelane.router.placeholders import GPUS, SHARD, SHARDS, names_in
from widelane.router.work import Mode, Part

_ALWAYS = frozenset({GPUS, SHARD, SHARDS})
_SPREAD = frozenset({Mode.UNITS, Mode.STATIC})


def command_findings(case: PhaseCase) -> Iterator[Finding]:
    """Every finding about the commands and outputs of a phase."""
    for part in case.work.parts:
        yield from _words(case, (*part.where, "command"), part.facts)
        yield from _placeholders(case, part)
        yield from _axes(case, part)
        yield from _outputs(case, part)
        yield from _group(case, part)
        yield from _machines(case, part)
        yield from _barrier(case, part)
        if part.facts.variables:
            yield from _lane_env(case, (*part.where, "command"), part.facts)
    for key, command, known in (("setup", case.phase.setup, ()), ("merge", case.phase.merge, (SHARDS,))):
        if command is not None:
            yield from _lane_env(case, (key,), read_command(command))
            facts = read_command(command)
            yield from _words(case, (key,), facts)
            yield from _unknown(case, (key,), facts.names, known)
    yield from _too_many(case)


def _words(case: PhaseCase, at: tuple[str | int, ...], facts: CommandFacts) -> Iterator[Finding]:
    if facts.error:
        message = f"The command can't be split into words: {facts.error}."
        yield case.error(
            FindingCode.COMMAND_AXES,
            at,
            message,
            "Close the quote, or give the command as a list of words.",
            reason=facts.error,
        )
    if facts.operators:
        operators = " ".join(dict.fromkeys(facts.operators))
        yield case.error(
            FindingCode.COMMAND_SHELL,
            at,
            f"No shell runs the command, so {operators} would be an argument of the program.",
            'Put the line into a script, or write `["bash", "-c", "..."]`.',
            operators=operators,
        )
    if facts.assignment:
        name = facts.assignment.partition("=")[0]
        yield case.error(
            FindingCode.COMMAND_SHELL,
            at,
            f"No shell runs the command, so {name}=... would be the name of the program.",
            f"Set {name} in `env`, or begin the command with the word env.",
            variable=name,
        )


def _placeholders(case: PhaseCase, part: Part) -> Iterator[Finding]:
    axes = [axis.name for axis in part.axes or ()]
    yield from _unknown(case, (*part.where, "command"), part.facts.names, [*axes, GPUS, SHARD, SHARDS])
    # The count of GPUs is known when a unit runs; where its outputs are must be known before.
    yield from _unknown(case, (*part.where, "outputs"), names_in(part.outputs), [*axes, SHARD, SHARDS])


def _unknown(
    case: PhaseCase, at: tuple[str | int, ...], names: frozenset[str], known: Sequence[str]
) -> Iterator[Finding]:
    for name in sorted(names.difference(known)):
        guess = nearest(name, known)
        instead = f"Write {{{guess}}}" if guess else f"Declare {name} in `axes`" if known else "Take it out"
        yield case.error(
            FindingCode.COMMAND_AXES,
            at,
            f"{{{name}}} is nothing that can be filled in here"
            + (f"; known are {', '.join(f'{{{word}}}' for word in known)}." if known else "."),
            f"{instead}; for literal braces write {{{{{name}}}}}.",
            name=name,
            **({"instead": guess} if guess else {}),
        )


def _axes(case: PhaseCase, part: Part) -> Iterator[Finding]:
    axes, at = part.axes or (), (*part.where, "command")
    for axis in axes:
        if axis.size == 0:
            message = f"The axis {axis.name} has no values, so there is nothing to run."
            where = (*part.where, "axes", axis.name)
            fix = "Give it a size of 1 or more."
            yield case.error(FindingCode.COMMAND_AXES, where, message, fix, axis=axis.name, size=0)
    missing = [axis.name for axis in axes if axis.size > 1 and axis.name not in part.facts.names]
    if part.command is None or not missing or part.mode is Mode.STATIC or _spreads_itself(part):
        return
    words = ", ".join(f"{{{name}}}" for name in missing)
    yield case.error(
        FindingCode.COMMAND_AXES,
        at,
        f"The command doesn't name {words}, so units that differ in it would all run the same words.",
        f"Put {words} into the command, or take {', '.join(missing)} out of `axes`.",
        missing=", ".join(missing),
        units=part.units,
    )


def _spreads_itself(part: Part) -> bool:
    """A launcher divides the work among its processes, whatever the axes are called."""
    return part.mode is Mode.LAUNCHER and part.facts.launcher != DEVICES


def _outputs(case: PhaseCase, part: Part) -> Iterator[Finding]:
    if part.command is None or part.mode not in _SPREAD:
        return
    axes = [axis.name for axis in part.axes or () if axis.size > 1 and axis.name in part.facts.names]
    if part.mode is Mode.STATIC:
        axes = [SHARD]
    for index, output in enumerate(part.outputs):
        named = names_in((output,))
        missing = [name for name in axes if name not in named]
        if missing and SHARD not in named:
            words = ", ".join(f"{{{name}}}" for name in missing)
            yield case.error(
                FindingCode.COMMAND_AXES,
                (*part.where, "outputs", index),
                f"The output {output} is the same for units that differ in {words}: they would overwrite each other.",
                f"Put {words} into its path.",
                missing=", ".join(missing),
            )


def _group(case: PhaseCase, part: Part) -> Iterator[Finding]:
    """A count that the command fixes must be that of the group that each unit gets."""
    facts, group = part.facts, case.work.group
    if case.without_gpu:
        return
    at = (*part.where, "command")
    if facts.devices and part.mode in _SPREAD:
        yield case.error(
            FindingCode.BAD_GROUP,
            at,
            f"The command sets {DEVICES} to {facts.devices}, so that all units would run on the same GPUs.",
            "Take it out: each unit gets its own devices in that variable.",
            devices=facts.devices,
            units=part.units,
        )
    elif facts.gpus is not None and facts.gpus != group and (part.mode in _SPREAD or case.work.fixed is not None):
        yield case.error(
            FindingCode.BAD_GROUP,
            at,
            f"The command starts {facts.launcher} with a count of {facts.gpus}, but each unit gets {group} GPUs.",
            f"Write {{gpus}} for the count, or set gpus_per_shard to {facts.gpus}.",
            count=facts.gpus,
            gpus_per_shard=group,
        )


def _machines(case: PhaseCase, part: Part) -> Iterator[Finding]:
    nodes = part.facts.nodes
    if nodes > 1 and not case.without_gpu:
        yield case.error(
            FindingCode.BAD_GROUP,
            (*part.where, "command"),
            f"The command starts {part.facts.launcher} on {nodes} machines, but a phase has one: it would wait"
            " for the others for ever.",
            "Take the count of machines out, and ask for a wider one.",
            machines=nodes,
        )


def _barrier(case: PhaseCase, part: Part) -> Iterator[Finding]:
    if part.facts.barrier:
        yield case.error(
            FindingCode.WAVE_BARRIER,
            (*part.where, "command"),
            "A loop in the command starts work in the background and waits for all of it before it starts more.",
            "Name what the loop runs over in `axes`, and let the command run one unit: each free GPU then takes"
            " the next.",
            units=part.units,
        )


def _lane_env(case: PhaseCase, at: tuple[str | int, ...], facts: CommandFacts) -> Iterator[Finding]:
    """Variables that some lane which may run the phase doesn't set."""
    given = {name for name, _ in case.phase.env}.union(case.phase.secrets)
    for name in sorted(facts.variables - given):
        yield from _unset(case, at, name, shell=facts.shell)


def _unset(case: PhaseCase, at: tuple[str | int, ...], name: str, *, shell: bool) -> Iterator[Finding]:
    lanes = [lane for lane in reachable(case) if not case.bench.catalog.sets(lane.partition(".")[0], name)]
    if not lanes:
        return
    fix = f"Set {name} in `env`" + (f", or give it a default: ${{{name}:-value}}." if shell else "")
    fix += "" if shell else ", and let a shell put it in: `bash -c '...'`."
    yield case.error(
        FindingCode.COMMAND_LANE_ENV,
        at,
        f"The command uses ${name}, which is not set on {', '.join(lanes)}.",
        fix,
        variable=name,
        lanes=", ".join(lanes),
    )


def _too_many(case: PhaseCase) -> Iterator[Finding]:
    cap = case.bench.policy.enumerate_cap
    if case.work.mode is not Mode.UNITS or case.work.units <= cap:
        return
    axes = [axis for part in case.work.parts for axis in part.axes or ()]
    largest = max(axes, key=lambda axis: axis.size)
    others = max(1, case.work.units // largest.size)
    blocks = max(1, min(largest.size, cap // others))
    yield case.error(
        FindingCode.TOO_MANY_UNITS,
        ("axes", largest.name),
        f"{case.work.units:,} units are more than {cap:,}, and each would have its own process, log and record.",
        f"Group them: let one unit take a block of {largest.name}, for example {largest.name}_block: {blocks}"
        f" with {-(-largest.size // blocks):,} values of {largest.name} each.",
        units=case.work.units,
        cap=cap,
    )
