"""What follows a failure: another launch, and when, or the end. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Optional

FREE_CONTENTIONS = 3
"""Times that a job may be pushed off a card by others before that counts."""

STUCK = frozenset({"gpu_oom_self", "gpu_oom_contended", "host_oom", "shm", "lost", "env_broken", "spawn_error"})
"""What only a person can mend; other classes end `failed` unless they were retried in vain."""

_RETRIES = {"lost": 1}


@dataclass(frozen=True)
class Failure:
    """One failed attempt. `launches` counts this one too; `tally` the failures before it, by class."""

    reason: str
    exit_code: Optional[int]
    launches: int
    tally: dict[str, int]


@dataclass(frozen=True)
class Next:
    """`state` is cooling, failed or stuck; `delay` in seconds; `counted` whether it counts against attempts."""

    state: str
    delay: float = 0.0
    tally: Optional[dict[str, int]] = None
    counted: bool = True
    why: str = ""


def decide(job: dict[str, Any], failure: Failure, chance: float = 0.5) -> Next:
    """What follows; `chance` (0 to 1) spreads retries of many jobs. `job` is its full spec."""
    oom = job["oom_retry"]
    most = oom.get("max_attempts")
    tally = {**failure.tally, failure.reason: failure.tally.get(failure.reason, 0) + 1}
    times = tally[failure.reason]
    if most is not None and failure.launches >= most:
        return _give_up(job, failure.reason, tally, f"launched {failure.launches} times, the most allowed")
    if failure.reason == "gpu_oom_contended" and times <= FREE_CONTENTIONS:
        return Next("cooling", float(oom.get("delay", 120)), tally, counted=False, why="others held the card")
    if failure.reason in ("gpu_oom_self", "gpu_oom_contended"):
        return _own_memory(job, failure.reason, tally)
    rules = job["retry"]
    allowed = rules.get(failure.reason, _RETRIES.get(failure.reason, 0))
    if failure.reason == "exit":
        allowed = rules.get("codes", {}).get(str(failure.exit_code), allowed)
    if times > allowed:
        return _give_up(job, failure.reason, tally, "")
    return Next("cooling", _delay(rules, times, chance), tally, why=f"try {times + 1} of {allowed + 1}")


def _own_memory(job: dict[str, Any], reason: str, tally: dict[str, int]) -> Next:
    """The same command can't fit: once more to be sure, then what the job gives to change."""
    delay = float(job["oom_retry"].get("delay", 120))
    step = tally.get("step", 0)
    steps = job["oom_retry"].get("escalate", [])
    if step == 0 and not tally.get("confirming"):
        return Next("cooling", delay, {**tally, "confirming": 1}, why="once more, to be sure")
    if step < len(steps):
        return Next("cooling", delay, {**tally, "step": step + 1}, why=f"step {step + 1} of {len(steps)} of escalate")
    return _give_up(job, reason, tally, "it doesn't fit; ask for less, or for a card with more memory")


def _give_up(job: dict[str, Any], reason: str, tally: dict[str, int], why: str) -> Next:
    state = job["on_fail"] or ("stuck" if reason in STUCK or tally[reason] > 1 else "failed")
    return Next(state, 0.0, tally, why=why)


def _delay(rules: dict[str, Any], times: int, chance: float) -> float:
    grown = float(rules.get("delay", 1)) * float(rules.get("factor", 2)) ** min(times - 1, 32)
    spread = 1 + float(rules.get("jitter", 0.1)) * (2 * chance - 1)
    return min(grown, float(rules.get("cap", 3600))) * spread
