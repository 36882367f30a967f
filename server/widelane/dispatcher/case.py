"""One dispatch in a supervisor's hands: its journal, its state as of now, its store and its lanes."""

from __future__ import annotations

from pathlib import Path

from widelane.dispatcher.edge import Edge
from widelane.errors import LaneAuthError, LaneError, LaneUnknownError, StoreError
from widelane.lanes.protocol import Lane, Launch
from widelane.ledger import AttemptState, Event, Journal, PhaseState, RunState, fold
from widelane.ledger.events import Trouble
from widelane.simcloud.client import revive
from widelane.store import Store, open_store

Passing = (LaneUnknownError, LaneAuthError, StoreError)
"""Failures of the world that may pass: the question is asked again, and nothing is concluded."""
_LONGEST_PAUSE_SECONDS = 30.0
_FAILURES_OF_A_DEAD_CLOUD = 3
"""A simulated cloud that doesn't answer as often as that is started again: its machines lived on."""


class Case:
    """Reads and writes one dispatch; holds nothing that the journal doesn't."""

    def __init__(self, journal: Journal, run_id: str, dispatch_id: str, edge: Edge) -> None:
        self.journal = journal
        self.run_id = run_id
        self.dispatch_id = dispatch_id
        self.edge = edge
        self._lanes: dict[str, Lane] = {}
        self._version = -1
        self.run: RunState = fold(journal.events(run_id))
        self._failures = 0
        self.store: Store = open_store(self.run.requested.store_url)

    @property
    def phase(self) -> PhaseState:
        """The dispatch's state as of the last look."""
        return self.run.phases[self.dispatch_id]

    def refresh(self) -> None:
        """Look for events that others wrote."""
        version = self.journal.data_version()
        if version == self._version:
            return
        self._version = version
        self._fold()

    def _fold(self) -> None:
        self.run = fold(self.journal.events(self.run_id, self.run.last_seq), self.run)

    def record(self, event: Event) -> None:
        """Write an event of this dispatch, and fold it in."""
        self.journal.append(self.run_id, event, self.dispatch_id)
        self._failures = 0
        self._fold()

    def lane(self, name: str) -> Lane:
        """The lane of that name, opened once.

        Raises:
            ConfigError, LaneAuthError: it can't be.
        """
        if name not in self._lanes:
            self._lanes[name] = self.edge.open_lane(name, self.run.requested)
        return self._lanes[name]

    def launch(self, attempt: AttemptState) -> Launch:
        """The create of an attempt, the same each time it is asked for."""
        intended = attempt.intended
        requested = self.run.requested
        return Launch(
            attempt_id=intended.attempt_id,
            run_id=self.run_id,
            dispatch_id=self.dispatch_id,
            dispatch_key=requested.run_key[:32],
            name=intended.name,
            request_id=intended.request_id,
            rung=attempt.rung,
            zone=intended.zone,
            fence_seconds=intended.fence_seconds,
            wait_seconds=intended.wait_seconds,
            store_url=requested.store_url,
            spec_key=intended.spec_key,
            runner_sha256=requested.runner_sha256,
            image=intended.image,
            disk_gib=intended.disk_gib,
            secrets=intended.secrets,
            least_seconds=intended.least_seconds,
        )

    def wait(self, lane: Lane) -> None:
        """Leave the lane's own time between two questions."""
        self.edge.pause(lane.poll_seconds / lane.clock.rate)

    def note(self, error: LaneError | StoreError) -> None:
        """Note once that something doesn't answer."""
        noted = self.phase.trouble
        if noted is None or noted.code != error.code:
            self.record(Trouble(code=error.code, message=error.message, hint=error.hint))

    def trouble(self, error: LaneError | StoreError, lane: Lane) -> None:
        """Note that something doesn't answer, and wait, longer each time."""
        self.note(error)
        self._failures += 1
        if self._failures == _FAILURES_OF_A_DEAD_CLOUD and self.run.requested.sim_url is not None:
            revive(self.run.requested.sim_url, Path(self.run.requested.settings["home"]))
        pause = lane.poll_seconds * 2.0 ** min(self._failures, 10)
        self.edge.pause(min(pause, _LONGEST_PAUSE_SECONDS) / lane.clock.rate)
