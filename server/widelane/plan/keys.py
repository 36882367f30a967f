"""The tables of keys: what each wants and means. The parser, the JSON Schema and docs/plan.md are made from them."""

from __future__ import annotations

from typing import Any

from widelane.models.plan import NarrowBecause, NarrowKind, Needs, Pin, ProvisioningModel, Source
from widelane.plan import checks
from widelane.plan.command import CommandLine
from widelane.plan.drafts import Draft, as_model, build_plan
from widelane.plan.kinds import LARGEST, Boolean, Choice, Exactly, Number, Text
from widelane.plan.names import AcceptableCode, SecretNames
from widelane.plan.records import Key, ListOf, Record
from widelane.plan.values import ENVIRONMENT, RELOADS, Axes, RelativePath, SourceForm, UnitMinutes

_NAME = r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}"
_name = Text("a name of letters, digits, `.`, `_` and `-`, at most 63", "generate", _NAME)
_reason = Text("the reason, as a text", '"why this is so"')
_hours = Number("hours greater than 0", "8")
_minutes = Number("minutes, 0 or more", "8", low=0)
_some_minutes = Number("minutes greater than 0", "30")
_gib = Number("GiB greater than 0", "64")
_width = Number("a whole number of GPUs, 1 or more", "8", 1, LARGEST, integer=True)
_group = Number("a whole number of GPUs, 1 or more", "2", 1, LARGEST, integer=True)
_outputs = ListOf(RelativePath(), "a list of paths")
_names = ListOf(_name, "a list of phase names")

_PROVISIONING: dict[str, Any] = {model.value.lower(): model for model in ProvisioningModel}
_PROVISIONING["on_demand"] = ProvisioningModel.STANDARD

NEEDS = Record(
    "`needs`",
    "a mapping of GiB",
    "{gpu_mem_gib: 38, ram_gib: 64, disk_gib: 300}",
    {
        "gpu_mem_gib": Key(_gib, "GPU memory in use at the peak, per GPU, in GiB."),
        "ram_gib": Key(_gib, "Host memory of one machine, in GiB."),
        "disk_gib": Key(_gib, "Disk of one machine, in GiB."),
    },
    as_model(Needs),
)

PIN = Record(
    "`pin`",
    "a mapping of what is pinned and the `reason`",
    "{lane: gcp, reason: the data is in its bucket}",
    {
        "lane": Key(Text("a lane", "gcp"), "The only lane to walk."),
        "model": Key(
            Choice("a provisioning model", _PROVISIONING, ("spot", "flex_start", "on_demand")),
            "The only provisioning model: spot, flex_start or on_demand.",
            field="provisioning_model",
        ),
        "zone": Key(Text("a zone", "us-central1-a"), "The only zone."),
        "reason": Key(_reason, "Why; shown in every status.", required=True),
    },
    as_model(Pin),
    (checks.pin_pins,),
)

NARROW_BECAUSE = Record(
    "`narrow_because`",
    "a mapping of a `kind` and its number",
    "{kind: rate_limited, calls: 50000, calls_per_minute: 500}",
    {
        "kind": Key(
            Choice("a kind", {kind.value: kind for kind in NarrowKind}, tuple(kind.value for kind in NarrowKind)),
            "order_dependent, rate_limited, licence_seats or shared_state.",
            required=True,
        ),
        "calls": Key(Number("calls greater than 0", "50000"), "With rate_limited: calls in the whole phase."),
        "calls_per_minute": Key(
            Number("calls a minute, greater than 0", "500"), "With rate_limited: what the service allows."
        ),
        "seats": Key(
            Number("a whole number of seats, 1 or more", "2", 1, LARGEST, integer=True),
            "With licence_seats: units that can run at once.",
        ),
        "path": Key(Text("a path", "cache/index.db"), "With shared_state: what only one unit may write."),
    },
    as_model(NarrowBecause),
    (checks.narrow_has_number,),
)

SOURCE = Record(
    "`source`",
    "a mapping of a folder, or of a repository and commit",
    "{path: .}",
    {
        "path": Key(Text("a folder", "."), "A folder, relative to the plan's own."),
        "git": Key(Text("a URL", "https://example.org/repo.git"), "A repository."),
        "rev": Key(
            Text(
                "a commit by its whole SHA (`git rev-parse HEAD`)",
                "0123456789abcdef0123456789abcdef01234567",
                r"[0-9a-f]{40}|[0-9a-f]{64}",
            ),
            "With git: the commit, by its whole SHA.",
        ),
    },
    as_model(Source),
    (checks.source_is_one,),
)

ACCEPT = Record(
    "`accept`",
    "a mapping of a finding's `code`, its `phase` and a `reason`",
    "{code: too_wide, phase: generate, reason: warm spares}",
    {
        "code": Key(AcceptableCode(), "The finding's code.", required=True),
        "phase": Key(_name, "The phase; in a phase's own list it is that phase.", required=True),
        "reason": Key(_reason, "Why; shown in every status.", required=True),
    },
    Draft,
)

OWN_ACCEPT = Record(
    "`accept`",
    "a mapping of a finding's `code` and a `reason`",
    "{code: too_wide, reason: warm spares}",
    dict(ACCEPT.keys) | {"phase": Key(_name, "Only its own phase's name; may be left out.")},
    Draft,
)

ARM = Record(
    "an arm",
    "an arm: a mapping that begins with its `name`",
    '{name: small, axes: {draw: 10}, command: "python run.py --draw {draw}"}',
    {
        "name": Key(_name, "Its name, unique in the phase.", required=True),
        "axes": Key(Axes(), "As for a phase."),
        "command": Key(CommandLine(), "As for a phase."),
        "outputs": Key(_outputs, "As for a phase."),
        "min_width": Key(_width, "As for a phase."),
        "gpus_per_shard": Key(_group, "As for a phase."),
        "gpu_hours": Key(_hours, "As for a phase."),
        "unit_minutes": Key(UnitMinutes(), "As for a phase."),
    },
    Draft,
    (checks.one_estimate, checks.unit_minutes_count),
)

_source = SourceForm(SOURCE)
_store = Text(
    "a URL: file:///folder, gs://bucket/prefix or ssh://host/folder",
    "file:///srv/widelane-store",
    r"(?:file:///|gs://|ssh://)\S+",
)
_secrets = SecretNames()

SHARED_KEYS: dict[str, Key] = {
    "source": Key(
        _source,
        "The code that is shipped: `{path: FOLDER}`, `{git: URL, rev: SHA}` or `none` (the default).",
    ),
    "store": Key(_store, "Where outputs, logs and records go; the default is in widelane's home.", words=("bucket",)),
    "env": Key(ENVIRONMENT, "Environment of every unit.", words=("environment", "variables")),
}
"""Keys of a phase that the plan can set for all of them."""

PHASE = Record(
    "a phase",
    "a phase: a mapping that begins with its `name`",
    '{name: train, intent: lora-7b, axes: {seed: 8}, gpu_hours: 8, command: "python train.py --seed {seed}"}',
    {
        "name": Key(_name, "Its name, unique in the plan.", required=True, words=("id", "phase", "title")),
        "intent": Key(
            Text("the name of an intent", "capture-7b"),
            "Kind of work; GPU need comes from the table of intents.",
            words=("kind",),
        ),
        "axes": Key(
            Axes(),
            "Axes along which the work shards, with size or values; units are their product. Or `none`.",
            words=("axis", "shards", "shard", "matrix"),
        ),
        "why": Key(_reason, "With `axes: none`: why nothing shards."),
        "gpu_hours": Key(
            _hours, "Total work in hours on one reference GPU.", words=("hours", "estimate", "planned_gpu_h")
        ),
        "unit_minutes": Key(
            UnitMinutes(), "Instead of gpu_hours: minutes a unit takes; a list when units differ.", words=("minutes",)
        ),
        "wall_minutes": Key(_some_minutes, "Wall clock of a phase without GPU.", words=("wall", "duration")),
        "setup_minutes": Key(_minutes, "Loading image and model, per shard. Default 0."),
        "tail_minutes": Key(_minutes, "Serial work at the end, such as the merge. Default 0."),
        "reload_minutes": Key(
            RELOADS,
            "By axis: what a GPU pays when its next unit has another value of it. `setup_minutes` has the first.",
            words=("reload",),
        ),
        "checkpoint_minutes": Key(_some_minutes, "Time between checkpoints within a unit."),
        "checkpoint_write_minutes": Key(_some_minutes, "What writing one checkpoint takes."),
        "width": Key(
            _width,
            "GPUs asked for. Left out: the recommended width.",
            words=("gpu_count", "num_gpus", "gpu", "n_gpus", "parallelism"),
        ),
        "min_width": Key(
            _width, "Fewer GPUs than this don't start it. Left out: the intent's base.", words=("min_gpus",)
        ),
        "gpus": Key(
            Exactly(
                0, "only 0 (an API or CPU phase)", "For GPUs write `width: N`; `gpus: 0` marks a phase without any."
            ),
            "0 for an API or CPU phase; no other value.",
        ),
        "gpus_per_shard": Key(_group, "GPUs that one unit uses together. Default 1.", words=("tensor_parallel", "tp")),
        "needs": Key(NEEDS, "What one machine must hold.", words=("requires", "resources", "requirements")),
        "setup": Key(CommandLine(), "Run once per host before any unit."),
        "command": Key(
            CommandLine(),
            "What a unit runs, without a shell; `{axis}`, `{shard}`, `{shards}` and `{gpus}` are filled in.",
            words=("cmd", "run", "script", "workload_cmd", "args"),
        ),
        "outputs": Key(_outputs, "Files a unit writes, relative to its work folder; globs allowed.", words=("output",)),
        "merge": Key(CommandLine(), "Run once after the last unit."),
        "merge_outputs": Key(_outputs, "Files the merge writes."),
        "after": Key(
            _names, "Phases that must succeed first.", words=("depends_on", "depends", "needs_phase", "dependencies")
        ),
        "resumable": Key(
            Boolean(), "Whether finished units stand after an interruption. Default true when axes are units."
        ),
        "spot_tolerant": Key(Boolean(), "Spot machines lead the ladder. Default false.", words=("spot", "preemptible")),
        "time_limit_hours": Key(
            _hours, "Longest a machine may live.", words=("timeout", "time_limit", "max_run_hours")
        ),
        "pin": Key(
            PIN, "Restricts the walk to a lane, provisioning model or zone, with a reason.", words=("backend", "lane")
        ),
        "hold": Key(Boolean(), "Keep the previous phase's machine through this one. Default false."),
        "justification": Key(_reason, "Shown with the verdict; never changes it.", words=("reason", "note", "notes")),
        "narrow_because": Key(NARROW_BECAUSE, "A checkable reason to stay narrow; its number caps the useful width."),
        "arms": Key(
            ListOf(ARM, "a list of arms", least=1), "Independent parts that share the phase's request.", words=("arm",)
        ),
        "accept": Key(
            ListOf(OWN_ACCEPT, "a list of accepted findings"),
            "Findings of this phase to override, each with its reason.",
        ),
        "image": Key(Text("an image", "pytorch-2-8"), "Machine or container image."),
        **SHARED_KEYS,
        "secrets": Key(_secrets, "Names of secrets the units need; values never stand in a plan.", words=("secret",)),
        "workdir": Key(
            RelativePath(example="experiments"), "Folder of the source that commands run in.", words=("cwd",)
        ),
        "inputs": Key(
            ListOf(RelativePath(example="data/prompts.jsonl"), "a list of paths"),
            "Files the units read, named for readers of the plan; outputs of `after` phases are there anyway.",
            words=("input",),
        ),
    },
    Draft,
    (
        checks.none_has_why,
        checks.one_estimate,
        checks.unit_minutes_count,
        checks.narrowest_is_not_wider,
        checks.order_has_no_axes,
        checks.arms_are_named_once,
        checks.reloads_name_axes,
    ),
)

PLAN = Record(
    "a plan",
    "a mapping that begins with `widelane: 1`",
    "{widelane: 1, phases: [...]}",
    {
        "widelane": Key(
            Exactly(1, "the version of the plan format, 1", "This widelane reads version 1: write `widelane: 1`."),
            "Version of the format: 1.",
            required=True,
            words=("version",),
        ),
        "task": Key(
            Text("a task id or title on one line", '"1121"', single_line=True),
            "Task (issue) that the plan belongs to.",
            words=("issue", "name", "title"),
        ),
        "phases": Key(
            ListOf(PHASE, "a list of phases", least=1),
            "The phases, in any order; `after` says what waits for what.",
            required=True,
            words=("phase", "steps", "jobs", "stages", "tasks"),
        ),
        "accept": Key(
            ListOf(ACCEPT, "a list of accepted findings"), "Findings to override, each with its phase and reason."
        ),
        **SHARED_KEYS,
    },
    build_plan,
    (
        checks.phases_are_named_once,
        checks.after_is_known,
        checks.accept_names_phases,
        checks.secrets_are_not_env,
        checks.hold_has_something,
    ),
)
