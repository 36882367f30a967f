"""Archives in, outputs, records and logs out: the controller's side of the store.

client     the store itself, with this program's errors
bucket     a bucket of Cloud Storage as one
listing    which files of a folder are its source
archive    a folder as a deterministic tar.gz
gitsource  the tree of a git revision
publish    runner, source and spec into the store
records    what hosts wrote, read back
pull       outputs into a folder
"""

from widelane.store.archive import Packed, pack
from widelane.store.client import Store, is_at_hand, open_store
from widelane.store.gitsource import fetch_git
from widelane.store.publish import publish_runner, publish_source, write_spec
from widelane.store.pull import pull
from widelane.store.records import (
    FailureRecord,
    FinishedReport,
    HostReport,
    Output,
    ProgressReport,
    UnitRecord,
    failure_records,
    log_tail,
    read_finished,
    read_host,
    read_progress,
    unit_records,
)

__all__ = [
    "FailureRecord",
    "FinishedReport",
    "HostReport",
    "Output",
    "Packed",
    "ProgressReport",
    "Store",
    "UnitRecord",
    "failure_records",
    "fetch_git",
    "is_at_hand",
    "log_tail",
    "open_store",
    "pack",
    "publish_runner",
    "publish_source",
    "pull",
    "read_finished",
    "read_host",
    "read_progress",
    "unit_records",
    "write_spec",
]
