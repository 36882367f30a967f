"""What every tool stands at: settings, tables, quotas read lately, and the dispatcher, opened when first needed."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, Protocol

from widelane.errors import ConfigError
from widelane.lanes.clock import SystemClock
from widelane.tools.rehearsal import simulated

if TYPE_CHECKING:
    from widelane.config import Settings
    from widelane.dispatcher import SimTarget
    from widelane.facts import Catalog, Policy
    from widelane.models.clock import Clock
    from widelane.models.dispatch import DispatchAnswer, RunEvent, RunStatus
    from widelane.models.plan import ParsedPlan
    from widelane.models.quota import QuotaSnapshot
    from widelane.models.verdict import PlanVerdict
    from widelane.tools.given import PlanGiven
    from widelane.tools.judging import Judge

QUOTA_SECONDS = 300.0
"""How long quotas that were read keep counting."""
_REMEMBERED = 64


class Runs(Protocol):
    """What the tools need of `dispatcher.Client`."""

    def submit(
        self,
        parsed: ParsedPlan,
        verdict: PlanVerdict,
        *,
        phase: str | None = None,
        fresh: bool = False,
        sim: SimTarget | None,
    ) -> DispatchAnswer:
        """Write the request for a run, and see to it that a supervisor hears of it."""
        ...

    def status(self, run_id: str) -> RunStatus:
        """The run as it stands."""
        ...

    def wait(
        self,
        run_id: str,
        seconds: float,
        after_seq: int = 0,
        *,
        enough: Callable[[RunStatus], bool] | None = None,
    ) -> RunStatus:
        """Block until there is an event after `after_seq` (or it is `enough`), the run ends, or `seconds` are over."""
        ...

    def events(self, run_id: str, after_seq: int = 0) -> tuple[RunEvent, ...]:
        """The run's journal after `after_seq`."""
        ...

    def runs(self) -> tuple[RunStatus, ...]:
        """Every run, newest first."""
        ...

    def release(self, run_id: str) -> RunStatus:
        """Ask for the run's machines to be let go."""
        ...


class Desk:
    """Built once per process by the server or the command line; safe to share between threads.

    `sim` is a scenario file or the URL of a simulated cloud. A scenario is started when something is to be created or
    quotas are to be read, not before.
    """

    def __init__(
        self,
        settings: Settings | Callable[[], Settings],
        *,
        cwd: Path,
        sim: str | None = None,
        clock: Clock | None = None,
        runs: Callable[[Settings], Runs] | None = None,
        quotas: Callable[[Settings, tuple[str, ...]], QuotaSnapshot] | None = None,
    ) -> None:
        self._load = settings if callable(settings) else lambda: settings
        self.cwd = cwd
        self._sim = sim
        self._clock: Clock = clock or SystemClock()
        self._open_runs = runs or _open_runs
        self._ask_quotas = quotas or _ask_quotas
        self._quotas: tuple[float, QuotaSnapshot] | None = None
        self._judged: OrderedDict[tuple[str, str], tuple[ParsedPlan, PlanVerdict]] = OrderedDict()
        self._lock = RLock()

    @classmethod
    def open(cls, cwd: Path, env: Mapping[str, str], sim: str | None = None) -> Desk:
        """The desk of a working folder and environment. Creates nothing; reads widelane.toml when it is needed."""

        def load() -> Settings:
            from widelane import config  # noqa: PLC0415 - read at the first call, not at start-up

            return config.load(cwd, env)

        return cls(load, cwd=cwd, sim=sim)

    @cached_property
    def judge(self) -> Judge:
        """Tables and verdicts.

        Raises:
            ConfigError: a policy value, an intent or widelane.toml can't be used; the next call reads them again.
        """
        from widelane.tools.judging import Judge  # noqa: PLC0415 - parser and router load at the first call

        return Judge(self._load(), rehearsed=bool(self._sim))

    @cached_property
    def settings(self) -> Settings:
        """What widelane.toml and the environment say. A simulated cloud is not in them: `rehearsed` puts it there.

        Raises:
            ConfigError: widelane.toml can't be used.
        """
        return self._load()

    @property
    def catalog(self) -> Catalog:
        """Machine types, offers, prices and intents in force."""
        return self.judge.catalog

    @property
    def policy(self) -> Policy:
        """The policy in force."""
        return self.judge.policy

    def judged(self, given: PlanGiven) -> tuple[ParsedPlan, PlanVerdict]:
        """The plan that was given, and the verdict on it. The same text gets the same objects.

        Raises:
            InputError: none or both were given.
            PlanError: every problem of the text.
        """
        given.require_one()
        known = self.known_quotas()
        if given.plan_path:
            parsed = self.judge.read(self.path(given.plan_path))
            return parsed, self.judge.verdict(parsed, known)
        key = (given.plan, known.taken_at if known else "")
        with self._lock:
            found = self._judged.get(key)
        if found is None:
            parsed = self.judge.parse(given.plan, self.cwd)
            found = parsed, self.judge.verdict(parsed, known)
            with self._lock:
                self._judged[key] = found
                while len(self._judged) > _REMEMBERED:
                    self._judged.popitem(last=False)
        return found

    def path(self, text: str) -> Path:
        """A path as it was given, from the working folder."""
        path = Path(text).expanduser()
        # The name that was typed is the one that is understood in a message.
        return path if self.cwd == Path.cwd() else self.cwd / path

    @cached_property
    def runs(self) -> Runs:
        """Runs of this home, to look at and to let go."""
        return self._open_runs(self.settings)

    def submit(self, parsed: ParsedPlan, verdict: PlanVerdict, *, phase: str, fresh: bool) -> DispatchAnswer:
        """Ask for a run, on the simulated cloud when there is one. `phase` "" is every phase.

        Raises:
            WidelaneError: what `dispatcher.Client.submit` raises, and ScenarioError.
        """
        if not self._sim:
            return self.runs.submit(parsed, verdict, phase=phase or None, fresh=fresh, sim=None)
        from widelane.dispatcher import SimTarget  # noqa: PLC0415 - loads with the first run, not at start-up

        settings = self.rehearsed()
        target = SimTarget(settings.gcp.endpoint or "") if settings.gcp else None
        return self._open_runs(settings).submit(parsed, verdict, phase=phase or None, fresh=fresh, sim=target)

    def rehearsed(self) -> Settings:
        """The settings with the simulated cloud in place of every real lane; starts its scenario if it isn't running.

        Raises:
            ScenarioError: a scenario that can't be used.
            ConfigError: nothing answers at the URL.
        """
        return simulated(self.settings, self._sim, self.path(self._sim)) if self._sim else self.settings

    def known_quotas(self) -> QuotaSnapshot | None:
        """What quotas said when they were last read, if that is lately."""
        with self._lock:
            read = self._quotas
        return read[1] if read and self._clock.elapsed() - read[0] <= QUOTA_SECONDS else None

    def read_quotas(self) -> QuotaSnapshot:
        """Ask the project for its quotas now; verdicts count them for `QUOTA_SECONDS`.

        Raises:
            ConfigError: no project is configured.
            LaneAuthError: no credentials.
        """
        snapshot = self._ask_quotas(self.rehearsed(), self.judge.regions)
        with self._lock:
            self._quotas = (self._clock.elapsed(), snapshot)
        return snapshot

    def saved_quotas(self, paths: tuple[str, ...]) -> QuotaSnapshot:
        """Quotas from saved answers. Verdicts don't count them: they say nothing of now.

        Raises:
            InputError: a file that can't be read, or holds no such answer.
        """
        from widelane.tools.saved import read_answers  # noqa: PLC0415 - only for a saved answer

        return read_answers([self.path(path) for path in paths])

    def age_of(self, snapshot: QuotaSnapshot) -> int | None:
        """Whole seconds since quotas were read; None when they don't say when."""
        try:
            taken = datetime.fromisoformat(snapshot.taken_at)
        except ValueError:
            return None
        now = self._clock.now()
        return max(int((now - (taken if taken.tzinfo else taken.replace(tzinfo=UTC))).total_seconds()), 0)


def _open_runs(settings: Settings) -> Runs:
    from widelane.dispatcher import Client  # noqa: PLC0415 - ledger and store load with the first run, not at start-up

    return Client(settings)


def _ask_quotas(settings: Settings, regions: tuple[str, ...]) -> QuotaSnapshot:
    from widelane.lanes.registry import open_lane  # noqa: PLC0415 - as above

    if settings.gcp is None:
        raise ConfigError(
            "no Google Cloud project is configured, so there are no quotas to read",
            hint="set project in [lanes.gcp] of widelane.toml (`widelane init` writes one), or give --sim SCENARIO",
        )
    return open_lane("gcp", settings).quotas(regions)
