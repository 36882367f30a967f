"""What a pod runs: keep the runner going, end the pod at its deadline, and delete it when the work is over.

Standard library only, Python 3.9 or newer; it travels in the pod's environment, deflated. The service has no run limit
of its own, so the deadline is kept here. It asks the API with the key that the service puts into every pod, whose reach
is this pod.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from widelane.lanes.hostside import (
    BootstrapError,
    Keeper,
    alone,
    fetch_runner,
    insist,
    last_word,
    patiently,
    say,
    wait_for_driver,
)
from widelane.runner.host.store import Store, open_store

PREFIX = "WIDELANE_POD_"


class Pod:
    """This pod, from its environment. What was put there for the bootstrap is taken out of it: work doesn't see it."""

    def __init__(self, env: Mapping[str, str]) -> None:
        self._env = dict(env)
        self.id = self._env.get("RUNPOD_POD_ID", "")

    def value(self, name: str) -> str:
        """One of our variables. Raises BootstrapError when it isn't there."""
        try:
            return self._env[PREFIX + name]
        except KeyError:
            raise BootstrapError(f"the pod has no {PREFIX}{name}") from None

    @property
    def deadline(self) -> float:
        """Seconds since 1970; 0 when none can be read, so that a pod without one ends at once."""
        with contextlib.suppress(BootstrapError, ValueError):
            return float(self.value("DEADLINE"))
        return 0.0

    def terminate(self) -> None:
        """Ask for the deletion of this pod, by REST and, should that refuse, by GraphQL.

        Raises OSError (an HTTPError when the service refused), ValueError or BootstrapError.
        """
        api = self.value("API")
        try:
            self._call("DELETE", f"{api}/v2/pods/{self.id}", None)
        except (OSError, ValueError) as error:
            say(f"REST: {error}")
            query = f'mutation {{ podTerminate(input: {{ podId: "{self.id}" }}) }}'
            answer = self._call("POST", f"{api}/graphql", {"query": query})
            if "errors" in answer or "data" not in answer:
                raise BootstrapError(f"GraphQL: {json.dumps(answer)[:300]}") from error

    def _call(self, method: str, url: str, body: dict[str, Any] | None) -> dict[str, Any]:
        request = urllib.request.Request(
            url,
            data=None if body is None else json.dumps(body).encode(),
            headers={
                "Authorization": f"Bearer {self._env.get('RUNPOD_API_KEY', '')}",
                "Content-Type": "application/json",
                # The default agent of urllib is turned away by some front ends.
                "User-Agent": "widelane-bootstrap",
            },
            method=method,
        )
        with urllib.request.urlopen(request, timeout=30.0) as answer:
            text = answer.read()
        found: dict[str, Any] = json.loads(text) if text.strip() else {}
        return found


class Deadline(threading.Thread):
    """Deletes the pod at its deadline, whatever runs."""

    def __init__(self, pod: Pod, leaving: threading.Event, die: Callable[[int], object] = os._exit) -> None:
        super().__init__(daemon=True)
        self._pod = pod
        self._leaving = leaving
        self._die = die

    def run(self) -> None:
        """Wait, delete; a container whose pod can't be deleted ends, and doesn't work when it is started again."""
        while time.time() < self._pod.deadline:
            time.sleep(min(30.0, max(0.0, self._pod.deadline - time.time())))
        self._leaving.set()
        say("the deadline is reached")
        insist(self._pod.terminate)
        self._die(1)


def work(pod: Pod, root: Path, leaving: threading.Event) -> str:
    """Do what the environment says. "" when there is nothing (more) to do, else why it couldn't be done."""
    if not pod.id:
        raise BootstrapError("the service has not set RUNPOD_POD_ID")
    store_url, lease = pod.value("STORE"), pod.value("LEASE")
    store = open_store(store_url)
    if patiently(lambda: store.exists(f"leases/{lease}/finished.json")) or not claimed(store, lease, pod.id):
        return ""
    runner = fetch_runner(store, pod.value("RUNNER"), root)
    wait_for_driver(int(pod.value("GPUS")))
    host = root / "host"
    spec = pod.value("SPEC")
    command = [sys.executable, str(runner), "host", "--store", store_url, "--spec", spec, "--root", str(host)]
    return Keeper(lambda _text: True, host / "progress.json", leaving).keep(command)


def claimed(store: Store, lease: str, pod_id: str) -> bool:
    """Whether the lease is this pod's. A create that was given up as lost has been claimed by who gave it up."""
    key = f"leases/{lease}/claim.json"
    store.put_if_absent(key, json.dumps({"pod": pod_id}).encode())
    holder: Any = json.loads(store.get(key))["pod"]
    if holder != pod_id:
        say(f"the lease {lease} is held by {holder or 'nobody: it was withdrawn'}")
    return bool(holder == pod_id)


def tell(pod: Pod, reason: str) -> None:
    """Say why there will be no result: as the lease's last word, if there is none."""
    try:
        store = open_store(pod.value("STORE"))
        store.put_if_absent(f"leases/{pod.value('LEASE')}/finished.json", json.dumps(last_word(reason)).encode())
    except (BootstrapError, OSError, ValueError) as error:
        say(f"the store can't be told: {error}")


def collect_orphans(first: bool) -> None:
    """As a container's first process: leave the work to a child and collect what it orphans. Returns in the child."""
    if not first:
        return
    child = os.fork()
    while child:
        pid, status = os.wait()
        if pid == child:
            os._exit(os.waitstatus_to_exitcode(status) & 0xFF)


def main() -> int:
    """Work, tell, delete."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--root", type=Path, required=True)
    root: Path = parser.parse_args().root
    collect_orphans(os.getpid() == 1)
    pod = Pod(os.environ)
    for name in [name for name in os.environ if name.startswith(PREFIX)]:
        del os.environ[name]
    with alone(root) as first:
        if not first:
            return 0
        leaving = threading.Event()
        reason = ""
        if time.time() < pod.deadline:
            Deadline(pod, leaving).start()
            try:
                reason = work(pod, root, leaving)
            except (BootstrapError, OSError, ValueError, KeyError) as error:
                reason = str(error)
        if reason:
            say(reason)
            tell(pod, reason)
        return 0 if insist(pod.terminate) else 1


if __name__ == "__main__":
    sys.exit(main())
