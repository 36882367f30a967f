"""Plan text to Plan, with the place of every key: YAML, or Markdown with one `yaml widelane` block."""

from __future__ import annotations

from widelane.plan.mend import mended
from widelane.plan.parse import ARGUMENT, parse, read
from widelane.plan.schema import schema

__all__ = ["ARGUMENT", "mended", "parse", "read", "schema"]
