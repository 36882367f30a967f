"""Runs as text: one line a run, and one run with its phases, attempts and GPUs."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from widelane.models.attempt import AttemptRow, Outcome
from widelane.models.dispatch import DispatchState, GpuProgress, PhaseStatus, RunStatus, UnitCounts
from widelane.reports.clean import clean_line
from widelane.reports.paper import Paper, Style, plural

_ENDS: dict[DispatchState, Style] = {
    DispatchState.SUCCEEDED: "good",
    DispatchState.FAILED: "bad",
    DispatchState.EXHAUSTED: "bad",
    DispatchState.STOPPED: "bad",
    DispatchState.ATTEMPT_CAP: "bad",
    DispatchState.CANCELLED: "warn",
}
_BAR = 20


def state_word(state: DispatchState, paper: Paper) -> str:
    """The state, painted when it is an end."""
    style = _ENDS.get(state)
    return state.value if style is None else paper.paint(state.value, style)


def when(at: str) -> str:
    """A journal's time to the second: `2026-03-01 12:00:00Z`; as it is when it isn't one."""
    try:
        moment = datetime.fromisoformat(at).astimezone(UTC)
    except ValueError:
        return clean_line(at)
    return f"{moment:%Y-%m-%d %H:%M:%S}Z"


def runs_report(runs: Sequence[RunStatus], paper: Paper) -> str:
    """One line a run, in the order given."""
    if not runs:
        return "no runs\n"
    rows = [
        (
            run.run_id,
            state_word(run.state, paper),
            when(run.started_at),
            clean_line(run.task or "-"),
            _phase_states(run),
        )
        for run in runs
    ]
    return "\n".join(paper.table(("run", "state", "started", "task", "phases"), rows, indent="")) + "\n"


def _phase_states(run: RunStatus) -> str:
    return ", ".join(f"{clean_line(phase.name)} {phase.state.value}" for phase in run.phases)


def status_report(run: RunStatus, paper: Paper) -> str:
    """One run: its phases with what they hold, every attempt and why it missed, and units done per GPU."""
    lines = [f"{paper.paint(run.run_id, 'strong')}  {state_word(run.state, paper)}"]
    if run.note:
        lines += paper.wrap(clean_line(run.note), "  ")
    for entry in run.accepted:
        lines += paper.wrap(f"accepted {entry.code} of {entry.phase}: {clean_line(entry.reason)}", "  ")
    for phase in run.phases:
        lines += phase_lines(phase, paper)
    return "\n".join(lines) + "\n"


def phase_lines(phase: PhaseStatus, paper: Paper) -> list[str]:
    """One phase of a run."""
    lines = [f"  {paper.paint(clean_line(phase.name), 'strong')}  {state_word(phase.state, paper)}  {_holding(phase)}"]
    if phase.reason and phase.state is not DispatchState.SUCCEEDED:
        lines += paper.wrap(clean_line(phase.reason), "    ")
    if phase.hint:
        lines += paper.wrap(f"fix: {clean_line(phase.hint)}", "    ", "         ")
    for alarm in phase.alarms:
        lines += paper.wrap(f"watch: {clean_line(alarm)}", "    ", "           ")
    lines += [f"    {attempt_line(attempt, paper)}" for attempt in phase.attempts]
    if phase.units.total:
        lines.append(f"    {units_line(phase.units, paper)}")
    lines += [f"      {gpu_line(gpu)}" for gpu in phase.gpus]
    return [line.rstrip() for line in lines]


def _holding(phase: PhaseStatus) -> str:
    width = width_line(phase.requested_width, phase.realized_width)
    return f"{width}  {_machine(phase)}".strip()


def _machine(phase: PhaseStatus) -> str:
    if phase.lane == phase.machine_type:
        return phase.lane or ""
    parts = (phase.lane, phase.machine_type, phase.provisioning_model, phase.zone)
    return " ".join(part for part in parts if part)


def width_line(requested: int, realized: int | None) -> str:
    """Realized width against the requested one; empty for a phase without GPU."""
    if not requested:
        return "no GPU"
    if realized is None:
        return f"asked for width {requested}"
    return f"width {realized}" if realized == requested else f"width {realized} of {requested} asked"


def rung_words(machine_type: str, provisioning_model: str, zone: str | None) -> str:
    """A rung in one phrase: `a2-ultragpu-8g FLEX_START us-central1-a`, or `local`."""
    if zone == machine_type:
        return machine_type
    return " ".join(part for part in (machine_type, provisioning_model, zone or "") if part)


def attempt_line(attempt: AttemptRow, paper: Paper) -> str:
    """One create, or one skipped rung, in the words of the plain progress lines."""
    rung = rung_words(attempt.machine_type, attempt.provisioning_model.value, attempt.zone)
    if attempt.outcome is None:
        return f"trying   {rung}"
    if attempt.outcome is Outcome.GRANTED:
        return f"{paper.paint('granted', 'good')}  {rung}"
    if attempt.outcome is Outcome.SKIPPED:
        return f"{paper.paint('skipped', 'dim')}  {rung}: {clean_line(attempt.code)}"
    if attempt.outcome is Outcome.CANCELLED:
        return f"{paper.paint('let go', 'dim')}   {rung}: {missed_why(attempt.outcome, attempt.code)}"
    return f"{paper.paint('missed', 'warn')}   {rung}: {missed_why(attempt.outcome, attempt.code)}"


def missed_why(outcome: Outcome, code: str) -> str:
    """The class of a miss and the provider's code."""
    return f"{outcome.value} ({clean_line(code)})" if code not in ("", outcome.value) else outcome.value


def gpu_line(gpu: GpuProgress) -> str:
    """What one GPU did, and what it is at."""
    name = f"GPU {gpu.gpu}" if gpu.gpu.isdecimal() else clean_line(gpu.gpu)
    running = f"  at unit {clean_line(gpu.running)}" if gpu.running else ""
    return f"{name}  {plural(gpu.done, 'unit')}{running}"


def units_line(units: UnitCounts, paper: Paper) -> str:
    """A bar and the counts: `[#####.....] 10/20 units, 4 running`."""
    done = units.succeeded + units.failed
    filled = _BAR * done // units.total if units.total else 0
    counts = f"{done}/{units.total} units"
    if units.running:
        counts += f", {units.running} running"
    if units.failed:
        counts += ", " + paper.paint(f"{units.failed} failed", "bad")
    return f"[{'#' * filled}{'.' * (_BAR - filled)}] {counts}"


def progress_lines(run: RunStatus, paper: Paper) -> list[str]:
    """What is under way now: units done, in all and per GPU, of each phase that holds a machine or looks for one."""
    lines: list[str] = []
    for phase in run.phases:
        if not phase.state.live or phase.state is DispatchState.QUEUED:
            continue
        width = width_line(phase.requested_width, phase.realized_width)
        lines.append(f"{paper.paint(clean_line(phase.name), 'strong')}  {phase.state.value}  {width}")
        if phase.units.total:
            lines.append(f"  {units_line(phase.units, paper)}")
        lines += [f"    {gpu_line(gpu)}" for gpu in phase.gpus]
    return lines


def summary_report(run: RunStatus, paper: Paper) -> str:
    """The last word on a run: one line a phase, and for those that went wrong why and what to do."""
    rows = [
        (
            clean_line(phase.name),
            state_word(phase.state, paper),
            width_line(phase.requested_width, phase.realized_width),
            _machine(phase) or "-",
            f"{phase.units.succeeded}/{phase.units.total} units",
        )
        for phase in run.phases
    ]
    lines = [f"run {paper.paint(run.run_id, 'strong')}  {state_word(run.state, paper)}"]
    lines += paper.table(("phase", "state", "width", "machine", "units"), rows)
    for phase in run.phases:
        if phase.reason and not phase.state.live and phase.state is not DispatchState.SUCCEEDED:
            lines += paper.wrap(f"{clean_line(phase.name)}: {clean_line(phase.reason)}", "  ")
            lines += paper.wrap(f"fix: {clean_line(phase.hint)}", "    ", "         ") if phase.hint else []
    return "\n".join(lines) + "\n"
