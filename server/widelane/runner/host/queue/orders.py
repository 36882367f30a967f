"""What clients ask for, as rows of the table `command`: carried out and answered in one transaction."""

from __future__ import annotations

import json
from typing import Any, Callable

from .base import ENDED, OVER, Row, read_row
from .desk import Desk
from .edit import apply, difference, refused
from .spec import Json, QueueError

Answer = dict[str, Any]


class Orders:
    """Takes orders in the order they came."""

    def __init__(self, desk: Desk, take: Callable[[int], None]) -> None:
        self._desk = desk
        self._take_run = take
        self.poked = True
        self._verbs: dict[str, Callable[[int, Json], Answer]] = {
            "take": self._new,
            "edit": self._edit,
            "pause": self._pause,
            "resume": self._resume,
            "cancel": self._cancel,
            "retry": self._retry,
        }

    def carry_out(self) -> None:
        """All that came since the last poke."""
        if not self.poked:
            return
        self.poked = False
        db = self._desk.book.db
        rows = db.execute("select id, body from command where answer is null order by id").fetchall()
        for number, body in rows:
            self._desk.book.begin()
            answer = self._answer(json.loads(body))
            db.execute("update command set answer = ? where id = ?", (json.dumps(answer), number))

    def _answer(self, order: Json) -> Answer:
        db = self._desk.book.db
        found = db.execute("select id from run where name = ?", (order.get("run_id"),)).fetchone()
        if found is None:
            return {"error": "no_run", "message": f"no run {order.get('run_id')!r}"}
        run = int(found[0])
        try:
            answer = self._verbs[order["verb"]](run, order)
        except QueueError as error:
            return {"error": error.code, "message": str(error)}
        if order["verb"] not in ("take", "edit"):
            self._desk.book.event(run, "command", order["verb"], json.dumps(answer)[:500])
        state = db.execute("select state from run where id = ?", (run,)).fetchone()[0]
        return {**answer, "state": state}

    def _new(self, run: int, _order: Json) -> Answer:
        if run not in self._desk.roll.runs:
            self._take_run(run)
        return {"changed": 0}

    def _edit(self, run: int, order: Json) -> Answer:
        """Add, change and remove jobs. Live ones that change or go are ended first; then the order is given again."""
        desk, spec = self._desk, order["spec"]
        diff = difference(desk.book.db, run, spec)
        if refused(diff, spec.get("accept") or {}):
            return {"diff": diff, "applied": False}
        gone = set(diff["removed"]) | set(diff["changed"])
        live = [row for row in desk.live.values() if row.run == run and row.name in gone]
        if live:
            raise QueueError("live", f"{len(live)} of the jobs that change are running: cancel them first")
        self._activate(run)
        for name in diff["removed"]:
            desk.cancel(self._row(run, name))
        apply(desk.book.db, run, spec, diff)
        self._take_run(run)
        return {"diff": diff, "applied": True}

    def _row(self, run: int, name: str) -> Row:
        found = self._desk.book.db.execute("select id from job where run = ? and name = ?", (run, name)).fetchone()
        if found is None:
            raise QueueError("no_job", f"no job {name!r}")
        return self._desk.row(int(found[0]))

    def _chosen(self, run: int, order: Json, states: tuple[str, ...]) -> tuple[list[Row], list[Answer]]:
        """Jobs that an order means, and those of its ids that are in none of the states."""
        where, values = ["run = ?"], [run]
        for column, key in (("phase", "phase"), ("reason", "reason")):
            if order.get(key) is not None:
                choice = "(select id from phase where run = job.run and name = ?)" if key == "phase" else "?"
                where.append(f"{column} = {choice}")
                values.append(order[key])
        marks = ",".join("?" * len(states))
        db = self._desk.book.db
        found = db.execute(
            f"select id, name from job where {' and '.join(where)} and state in ({marks}) order by id",
            (*values, *states),
        ).fetchall()
        if order.get("ids") is None:
            return [self._desk.row(job) for job, _ in found], []
        by_name = {name: job for job, name in found}
        rows = [self._desk.row(by_name[name]) for name in order["ids"] if name in by_name]
        return rows, [{"id": name, "why": self._why_not(run, name)} for name in order["ids"] if name not in by_name]

    def _why_not(self, run: int, name: str) -> str:
        row = self._desk.book.db.execute("select state from job where run = ? and name = ?", (run, name)).fetchone()
        return "no such job" if row is None else f"it is {row[0]}"

    def _activate(self, run: int) -> None:
        """An ended run goes on."""
        marks = ",".join("?" * len(ENDED))
        self._desk.book.db.execute(
            "update run set state = 'running', ended = null, blocks = '[]'"
            f" where id = ? and state in ('paused', {marks})",
            (run, *ENDED),
        )
        if run not in self._desk.roll.runs:
            self._take_run(run)

    def _pause(self, run: int, order: Json) -> Answer:
        return self._set_pause(run, order, "someone paused it")

    def _resume(self, run: int, order: Json) -> Answer:
        self._desk.room.recount()
        self._activate(run)
        return self._set_pause(run, order, "")

    def _set_pause(self, run: int, order: Json, why: str) -> Answer:
        """Of a phase, or of the run; a run that goes on lets its phases go on."""
        desk, one = self._desk, self._desk.roll.runs.get(run)
        if one is None:
            return {"changed": 0}
        changed = 0
        if order.get("phase") is None:
            changed = int(one.paused != bool(why))
            one.paused = bool(why)
            desk.book.db.execute("update run set paused = ? where id = ?", (int(one.paused), run))
        for phase in one.phases.values():
            if order.get("phase") == phase.name or (order.get("phase") is None and not why):
                if phase.paused and not why:
                    phase.paused = ""
                    phase.failures.clear()
                    desk.book.db.execute("update phase set paused = '' where id = ?", (phase.id,))
                    desk.book.event(run, "phase", "resumed", phase.name)
                    changed += 1
                elif why and not phase.paused:
                    desk.pause(phase, why)
                    changed += 1
        return {"changed": changed, "refused": []}

    def _cancel(self, run: int, order: Json) -> Answer:
        self._activate(run)
        states = ("waiting", "held", "ready", "cooling", "starting", "running", "verifying")
        rows, refusals = self._chosen(run, order, states)
        self._desk.roll.remove({row.id for row in rows})
        for row in rows:
            fresh = self._desk.row(row.id)
            if fresh.state in states:
                self._desk.cancel(fresh)
        return {"changed": len(rows), "refused": refusals}

    def _retry(self, run: int, order: Json) -> Answer:
        self._activate(run)
        rows, refusals = self._chosen(run, order, tuple(state for state in OVER if state != "succeeded"))
        for row in rows:
            self._desk.book.move(row, "waiting", "", "", tally="{}", exit_code=None)
            if row.needs == 0:
                self._desk.release(read_row(self._desk.book.db, row.id))
        return {"changed": len(rows), "refused": refusals}
