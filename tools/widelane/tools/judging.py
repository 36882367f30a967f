"""The pure part of a desk: settings, tables, verdicts. It loads parser and router, so it is loaded late."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from widelane import config, facts, plan, router
from widelane.config import Settings
from widelane.facts import Catalog, Policy
from widelane.models.plan import ParsedPlan
from widelane.models.quota import QuotaReport, QuotaSnapshot
from widelane.models.verdict import PlanVerdict
from widelane.router import Bench


class Judge:
    """Judges plans under one configuration. `rehearsed`: for a simulated cloud, with no real lane."""

    def __init__(self, settings: Settings, *, rehearsed: bool) -> None:
        """Read the tables, with the intents and policy values of `settings`.

        Raises:
            ConfigError: one of those can't be used.
        """
        self._planned = settings.simulated("") if rehearsed else settings
        self._benches: dict[str, Bench] = {}
        origin, shipped = str(settings.file or config.FILE), facts.catalog()
        own = facts.load_intents(settings.intents, origin, machine_types=shipped.machine_types)
        self.catalog: Catalog = replace(shipped, intents=own)
        self.policy: Policy = facts.load_policy(settings.policy, origin)

    @property
    def regions(self) -> tuple[str, ...]:
        """Regions whose quotas and zones count."""
        return self._planned.regions or self.policy.regions

    def bench(self, quotas: QuotaSnapshot | None) -> Bench:
        """Everything that a verdict depends on besides the plan. It remembers results, so the newest is kept."""
        taken = quotas.taken_at if quotas else ""
        bench = self._benches.get(taken)
        if bench is None:
            gcp = self._planned.gcp
            bench = router.Bench(
                catalog=self.catalog,
                policy=self.policy,
                intents=self.catalog.intents,
                lanes=self._planned.lanes,
                regions=self.regions,
                quotas=quotas,
                disk_gib=gcp.disk_gib if gcp else None,
                external_address=gcp.external_address if gcp else True,
                rooms=self._planned.rooms,
            )
            self._benches = {taken: bench}
        return bench

    def parse(self, text: str, folder: Path) -> ParsedPlan:
        """A plan that came as an argument. Raises PlanError with every problem."""
        return plan.parse(text, folder=str(folder))

    def read(self, path: Path) -> ParsedPlan:
        """A plan in a file. Raises PlanError with every problem."""
        return plan.read(path)

    def verdict(self, parsed: ParsedPlan, quotas: QuotaSnapshot | None) -> PlanVerdict:
        """The verdict on a plan."""
        return router.judge(parsed, self.bench(quotas))

    def quota_report(
        self, quotas: QuotaSnapshot | None, *, parsed: ParsedPlan | None, intent: str, width: int
    ) -> QuotaReport:
        """Which rungs quotas admit, of a plan or of an intent at a width (0: its widest) and below.

        Raises:
            InputError: no such intent or width.
        """
        bench = self.bench(quotas)
        if parsed is not None:
            return router.quota_report(bench, plan=parsed)
        return router.quota_report(bench, intent=intent, width=width or None)
