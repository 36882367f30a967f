"""What callers do with runs: submit, look, wait, cancel, fetch. Writes requests, reads state, walks nothing."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from widelane.config import Settings
from widelane.dispatcher.fetching import fetch_logs, fetch_outputs
from widelane.dispatcher.launching import ensure_supervisor
from widelane.dispatcher.places import journal_path
from widelane.dispatcher.status import status_of
from widelane.dispatcher.submission import SimTarget, Submission
from widelane.errors import ConfigError, InputError, NotFoundError
from widelane.lanes.clock import SystemClock
from widelane.ledger import Journal, RunState, fold
from widelane.ledger.events import CancelRequested, ReleaseRequested
from widelane.models.dispatch import DispatchAnswer, RunEvent, RunStatus, UnitLog
from widelane.models.plan import ParsedPlan
from widelane.models.verdict import PlanVerdict, Verdict
from widelane.store import Store, open_store

_LOOK_SECONDS = 0.1
_LOOKS_PER_CHECK = 20


class Client:
    """A home's runs, as tools and command line see them."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    def submit(
        self,
        parsed: ParsedPlan,
        verdict: PlanVerdict,
        *,
        phase: str | None = None,
        fresh: bool = False,
        sim: SimTarget | None = None,
    ) -> DispatchAnswer:
        """Start a run of the plan, or of one of its phases, or adopt the one that is at it; returns at once.

        Raises:
            InputError: the plan can't be dispatched as it is (its phase, secrets, source).
            LaneAuthError: a lane it would walk has no credentials.
            BusyError: other work runs under the same task and phase.
        """
        submission = Submission(self._settings, parsed, verdict)
        if verdict.verdict is Verdict.REVISE:
            return submission.refused()
        run_id, request = submission.prepare(phase=phase, fresh=fresh, sim=sim)
        with self._journal() as journal:
            answer = submission.submit(journal, run_id, request)
            if answer.run_id is not None:
                status = self._status(journal, answer.run_id)
                answer = answer.model_copy(update={"state": status.state, "phases": status.phases})
        if answer.started:
            ensure_supervisor(self._settings.home)
        return answer

    def status(self, run_id: str) -> RunStatus:
        """How a run stands now.

        Raises:
            NotFoundError: there is no such run.
            InputError: the prefix fits several runs.
        """
        with self._look(run_id) as journal:
            return self._status(journal, self._resolve(journal, run_id))

    def wait(
        self,
        run_id: str,
        seconds: float,
        after_seq: int = 0,
        *,
        enough: Callable[[RunStatus], bool] | None = None,
    ) -> RunStatus:
        """The status once the journal has an event after `after_seq`, the run has ended, or `seconds` are over.

        With `enough`, once that is true of it instead of at the first event.
        """
        until = time.monotonic() + seconds
        with self._look(run_id) as journal:
            run_id = self._resolve(journal, run_id)
            looks = 0
            while True:
                status = self._status(journal, run_id)
                new = status.last_seq > after_seq if enough is None else enough(status)
                if new or not status.state.live or time.monotonic() >= until:
                    return status
                if looks % _LOOKS_PER_CHECK == 0:
                    ensure_supervisor(self._settings.home)
                looks += 1
                time.sleep(min(_LOOK_SECONDS, max(0.0, until - time.monotonic())))

    def events(self, run_id: str, after_seq: int = 0) -> tuple[RunEvent, ...]:
        """A run's journal from a sequence number on."""
        with self._look(run_id) as journal:
            return tuple(
                RunEvent(
                    seq=record.seq,
                    at=record.at,
                    kind=record.event.kind,
                    dispatch_id=record.dispatch_id,
                    body=record.event.model_dump(mode="json", exclude={"kind"}),
                )
                for record in journal.events(self._resolve(journal, run_id), after_seq)
            )

    def runs(self) -> tuple[RunStatus, ...]:
        """The newest runs, newest first, without asking their hosts."""
        if not journal_path(self._settings.home).exists():
            return ()
        with self._journal() as journal:
            return tuple(status_of(self._fold(journal, run_id), None) for run_id in journal.runs())

    def cancel(self, run_id: str, by: str = "") -> RunStatus:
        """Ask for a run to stop and let go; returns at once. A run that has ended stays as it is."""
        return self._ask(run_id, CancelRequested(by=by))

    def release(self, run_id: str, by: str = "") -> RunStatus:
        """Ask for whatever a run holds to be let go; for a live run that is a cancel."""
        return self._ask(run_id, ReleaseRequested(by=by))

    def _ask(self, run_id: str, event: CancelRequested | ReleaseRequested) -> RunStatus:
        with self._look(run_id) as journal:
            run_id = self._resolve(journal, run_id)
            state = self._fold(journal, run_id)
            if state.ended is None and not state.cancelled:
                journal.append(run_id, event)
            status = self._status(journal, run_id)
        if status.state.live:
            ensure_supervisor(self._settings.home)
        return status

    def pull(self, run_id: str, to: Path, phase: str | None = None) -> tuple[Path, ...]:
        """Fetch the outputs of a run, or of one phase, into a folder; the files written."""
        with self._look(run_id) as journal:
            state = self._fold(journal, self._resolve(journal, run_id))
        return fetch_outputs(state, to, phase)

    def log(self, run_id: str, phase: str | None = None, unit: int | None = None) -> str:
        """The ends of the logs of a unit, or of every unit, set-up and merge when none is named, each under a head.

        "" when nothing has run. Raises as `logs`.
        """
        parts = self.logs(run_id, phase, unit)
        return "\n".join(f"==> {log.phase} {log.part} <==\n{log.text}" for log in parts)

    def logs(self, run_id: str, phase: str | None = None, unit: int | None = None) -> tuple[UnitLog, ...]:
        """The same, one by one: oldest machine first, set-up, units in order, merge.

        Raises:
            NotFoundError: no such run, phase or unit.
        """
        with self._look(run_id) as journal:
            state = self._fold(journal, self._resolve(journal, run_id))
        return fetch_logs(state, phase, unit)

    def _journal(self) -> _Opened:
        return _Opened(self._settings.home)

    def _look(self, run_id: str) -> _Opened:
        """The journal for a question: a home without one isn't given one.

        Raises:
            NotFoundError: there is none, so there is no run.
        """
        if not journal_path(self._settings.home).exists():
            raise NotFoundError(
                f"no run {run_id!r}: there is no run yet in {self._settings.home}",
                hint="`widelane dispatch PLAN` starts one",
            )
        return self._journal()

    def _status(self, journal: Journal, run_id: str) -> RunStatus:
        state = self._fold(journal, run_id)
        return status_of(state, _store_of(state))

    def _fold(self, journal: Journal, run_id: str) -> RunState:
        return fold(journal.events(run_id))

    def _resolve(self, journal: Journal, run_id: str) -> str:
        """A run id from itself, a unique beginning of it, or `last`."""
        if run_id == "last":
            newest = next(iter(journal.runs(limit=1)), None)
            if newest is None:
                raise NotFoundError("there is no run yet", hint="`widelane dispatch PLAN` starts one")
            return newest
        found = journal.runs_like(run_id)
        if run_id in found:
            return run_id
        if run_id and len(found) > 1:
            raise InputError(f"{run_id!r} fits {len(found)} runs: {', '.join(found[:5])}", hint="give more of the id")
        if not run_id or not found:
            raise NotFoundError(f"no run {run_id!r}", hint="`widelane list` shows the runs")
        return next(iter(found))


class _Opened:
    """A journal for the length of a `with`."""

    def __init__(self, home: Path) -> None:
        self._home = home

    def __enter__(self) -> Journal:
        self._journal = Journal(journal_path(self._home), SystemClock())
        return self._journal

    def __exit__(self, *_: object) -> None:
        self._journal.close()


def _store_of(state: RunState) -> Store | None:
    try:
        return open_store(state.requested.store_url)
    except ConfigError:
        return None  # another version opened it; the journal alone still tells how the run stands
