"""What a command says about the GPUs that it uses. Commands are split into words and never run."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from widelane.models.plan import Command
from widelane.router.placeholders import GPUS, SHARD, names_in
from widelane.router.shell_text import script_of, segments_of, variables_of, waits_in_a_loop

DEVICES = "CUDA_VISIBLE_DEVICES"
_OPERATORS = re.compile(r"(?:&&|\|\||;;?|\||&|[0-9]?>{1,2}&?[0-9]?|<{1,3}|[0-9]?>&[0-9])")
_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")
_PYTHON = re.compile(r"python[0-9.]*")
_FIXED_SHARDS = re.compile(r"--?(?:num|n)[-_]?shards|--shards")
_WRAPPERS = frozenset({"exec", "nohup", "time", "nice", "stdbuf", "numactl"})
_RUNNERS = frozenset({"uv", "poetry", "pipenv", "pdm", "hatch", "conda", "micromamba"})

_MODULES = {
    "torch.distributed.run": "torchrun",
    "torch.distributed.launch": "torchrun",
    "accelerate.commands.launch": "accelerate",
    "deepspeed.launcher.runner": "deepspeed",
    "vllm.entrypoints.openai.api_server": "vllm",
    "vllm.entrypoints.api_server": "vllm",
    "vllm.entrypoints.cli.main": "vllm",
}
_NO_NAMES: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class CommandFacts:
    """What the words of a command say.

    `gpus` is a count of GPUs that the command fixes, None when it fixes none. `launcher` names the program that spreads
    over GPUs; `elastic` says that it takes every GPU it is given. `devices` is what it sets CUDA_VISIBLE_DEVICES to.
    `nodes` is a count of machines that it fixes; `variables` are taken from the environment, by a shell if `shell`;
    `barrier` says that a loop in it waits for all that it started.
    """

    names: frozenset[str] = frozenset()
    error: str = ""
    launcher: str = ""
    gpus: int | None = None
    elastic: bool = False
    shards: int | None = None
    operators: tuple[str, ...] = ()
    assignment: str = ""
    devices: str = ""
    nodes: int = 1
    variables: frozenset[str] = frozenset()
    shell: bool = False
    barrier: bool = False


def words_of(command: Command) -> list[str]:
    """The command's words. Raises ValueError when a quote stays open."""
    if not isinstance(command, str):
        return list(command)
    return command.split() if _is_plain(command) else shlex.split(command)


def _is_plain(command: str) -> bool:
    """Whether nothing in it is quoted."""
    return not ("'" in command or '"' in command or "\\" in command)


def _operators(command: Command, words: Sequence[str]) -> tuple[str, ...]:
    """Words that only a shell would understand; a list of words is taken as it is."""
    if not isinstance(command, str) or not any(mark in command for mark in "&|;<>"):
        return ()
    return tuple([word for word in words if _OPERATORS.fullmatch(word)])


@lru_cache(maxsize=4096)
def read_command(command: Command) -> CommandFacts:
    """The facts of one command."""
    try:
        words = words_of(command)
    except ValueError as error:
        return CommandFacts(error=str(error))
    names = names_in((command,) if isinstance(command, str) and _is_plain(command) else words)
    operators = _operators(command, words)
    assignment = words[0] if words and _ASSIGNMENT.match(words[0]) else ""
    program, devices = _program(words)
    script = script_of(program)
    launcher, gpus, nodes = "", None, 1
    for segment in _segments(program):
        simple, seen = _program(segment)
        devices = seen or devices
        launcher, options = _launcher(simple)
        if launcher:
            gpus = _COUNTERS[launcher](options)
            nodes = _nodes(options)
            break
    if not launcher and _listed(devices) is not None:
        launcher, gpus = DEVICES, _listed(devices)
    elastic = GPUS in names or (bool(launcher) and gpus is None)
    return CommandFacts(
        names=names,
        launcher=launcher,
        gpus=None if elastic else gpus,
        elastic=elastic,
        shards=_fixed_shards(words) if SHARD in names else None,
        operators=operators,
        assignment=assignment,
        devices=devices,
        nodes=nodes,
        variables=_variables(command, words, script),
        shell=script is not None,
        barrier=script is not None and waits_in_a_loop(script),
    )


def _variables(command: Command, words: Sequence[str], script: str | None) -> frozenset[str]:
    """Variables that the command takes from outside. A list of words without a shell is taken as it is."""
    text = script if script is not None else command if isinstance(command, str) else ""
    if "$" not in text:
        return _NO_NAMES
    given = {word.partition("=")[0] for word in words if _ASSIGNMENT.match(word)}
    return variables_of(text) - given


def _segments(program: list[str]) -> list[list[str]]:
    """The simple commands: the program itself, or those in the text that a shell is given with -c."""
    script = script_of(program)
    if script is None:
        return [program]
    try:
        return segments_of(script)
    except ValueError:
        return [program]


def _program(words: Sequence[str]) -> tuple[list[str], str]:
    """The words from the program on, behind assignments and wrappers; and what CUDA_VISIBLE_DEVICES is set to."""
    devices, position = "", 0
    while position < len(words):
        word = words[position].rpartition("/")[2]
        if _ASSIGNMENT.match(words[position]):
            name, _, value = words[position].partition("=")
            devices = value if name == DEVICES else devices
        elif word == "timeout":
            position += _after_options(words, position + 1) - position
        elif word in _RUNNERS and "run" in words[position + 1 : position + 2]:
            position = _after_options(words, position + 2) - 1
        elif word in _WRAPPERS or word == "env":
            position = _after_options(words, position + 1) - 1
        else:
            break
        position += 1
    return list(words[position:]), devices


def _after_options(words: Sequence[str], position: int) -> int:
    """The first place from `position` on that is no option."""
    while position < len(words) and words[position].startswith("-"):
        position += 1
    return position


def _launcher(program: Sequence[str]) -> tuple[str, Sequence[str]]:
    """The launcher that the words start, "" for anything else; and its own options, not those of its script."""
    if not program:
        return "", ()
    name, options = program[0].rpartition("/")[2], program[1:]
    if _PYTHON.fullmatch(name):
        module = program.index("-m") + 1 if "-m" in program[:-1] else 0
        name, options = _MODULES.get(program[module], "") if module else "", program[module + 1 :]
    elif name == "accelerate":
        name, options = (name, options[1:]) if options[:1] == ["launch"] else ("", options)
    if name not in _COUNTERS:
        return "", ()
    script = next((i for i, word in enumerate(options) if word.endswith(".py") or word in ("-m", "--module")), None)
    return name, options if script is None or name == "vllm" else options[:script]


def _torchrun(words: Sequence[str]) -> int | None:
    value = _option(words, "--nproc-per-node", "--nproc_per_node")
    if value in ("gpu", "auto"):
        return None
    return 1 if value is None else _count(value)


def _accelerate(words: Sequence[str]) -> int | None:
    value = _option(words, "--num_processes", "--num-processes", "-n")
    return None if value is None else _count(value)


def _deepspeed(words: Sequence[str]) -> int | None:
    included = _option(words, "--include", "-i")
    if included is not None:
        return _listed(included.partition(":")[2])
    value = _option(words, "--num_gpus", "--num-gpus")
    return None if value is None else _count(value)


def _vllm(words: Sequence[str]) -> int | None:
    count = 1
    for names in (
        ("--tensor-parallel-size", "-tp"),
        ("--pipeline-parallel-size", "-pp"),
        ("--data-parallel-size", "-dp"),
    ):
        value = _option(words, *names)
        part = 1 if value is None else _count(value)
        if part is None:
            return None
        count *= part
    return count


_COUNTERS: dict[str, Callable[[Sequence[str]], int | None]] = {
    "torchrun": _torchrun,
    "accelerate": _accelerate,
    "deepspeed": _deepspeed,
    "vllm": _vllm,
}


def _nodes(words: Sequence[str]) -> int:
    """Machines that a launcher is to start on; "1:4" is elastic and starts on one."""
    value = _option(words, "--nnodes", "--num_machines", "--num-machines", "--num_nodes", "--num-nodes")
    return 1 if value is None else _count(value) or 1


def _option(words: Sequence[str], *names: str) -> str | None:
    """The value of an option, given as `--name value` or `--name=value`."""
    for position, word in enumerate(words):
        name, equals, value = word.partition("=")
        if name in names:
            return value if equals else (words[position + 1] if position + 1 < len(words) else None)
    return None


def _count(text: str) -> int | None:
    return int(text) if text.isdecimal() and len(text) < 10 else None


def _listed(text: str) -> int | None:
    """How many devices "0,1,2" lists; a text that isn't such a list fixes nothing."""
    parts = [part.strip() for part in text.split(",") if part.strip()]
    return len(parts) if parts and "{" not in text and "$" not in text else None


def _fixed_shards(words: Sequence[str]) -> int | None:
    for position, word in enumerate(words):
        name, equals, value = word.partition("=")
        if _FIXED_SHARDS.fullmatch(name):
            following = value if equals else "".join(words[position + 1 : position + 2])
            return _count(following)
    return None
