"""What a supervisor is asked to run: argv, environment and folder of each kind of job."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from .attempt import Record
from .spec import Spec, Task


@dataclass(frozen=True)
class Requests:
    """Builds requests for one dispatch on one host. `width` is the realized one."""

    spec: Spec
    work: Path
    width: int

    def setup(self, gpus: tuple[str, ...]) -> Record:
        """The preparation of the host; sees every GPU."""
        return self._request(self.spec.setup or (), (), gpus, {})

    def task(self, task: Task, gpus: tuple[str, ...]) -> Record:
        """A unit or the merge."""
        own = {**task.env, "WIDELANE_UNIT": task.digest}
        if task.index >= 0:
            own["WIDELANE_SHARD"] = str(task.index)
        return self._request(task.argv, task.outputs, gpus, own)

    def _request(
        self, argv: tuple[str, ...], outputs: tuple[str, ...], gpus: tuple[str, ...], own: dict[str, str]
    ) -> Record:
        env = {
            **self.spec.env,
            **own,
            "WIDELANE_REQUESTED_WIDTH": str(self.spec.requested_width),
            "WIDELANE_WIDTH": str(self.width),
            "WIDELANE_SHARDS": str(len(self.spec.units)),
            "CUDA_VISIBLE_DEVICES": ",".join(gpus),
            "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
        }
        return {
            "argv": [part.replace("{gpus}", str(len(gpus))) for part in argv],
            "cwd": str(self.work / self.spec.workdir),
            "outputs": list(outputs),
            "env": env,
            "grace": self.spec.limits.grace,
        }
