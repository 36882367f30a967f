"""The two programs that a pod starts with, packed into its environment."""

from __future__ import annotations

import base64
import zlib
from dataclasses import dataclass
from functools import cache

from widelane.lanes.shipping import bootstrap_of, script_of

ARGS = "sh -c 'S=${TMPDIR:-/tmp}/widelane-start; echo $WIDELANE_POD_START | base64 -d >$S && exec sh $S'"
"""The container's command. The service splits it as a shell would; it may hold no double quote and no backslash."""


@dataclass(frozen=True, slots=True)
class Startup:
    """`script` is the sh script in base64; `bootstrap` the Python text, deflated and then in base64."""

    script: str
    bootstrap: str


@cache
def startup() -> Startup:
    """Both programs."""
    script = script_of("widelane.lanes.runpod", "start.sh").encode()
    text = bootstrap_of("widelane.lanes.runpod").encode()
    return Startup(
        script=base64.b64encode(script).decode(),
        bootstrap=base64.b64encode(zlib.compress(text, 9)).decode(),
    )
