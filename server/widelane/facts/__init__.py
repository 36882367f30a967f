"""Tables: machine types, zones, prices, kinds of work, and the default policy. Read once, checked cell by cell."""

from __future__ import annotations

from widelane.facts.answers import lane_errors
from widelane.facts.catalog import Catalog, catalog, gce_errors, load_catalog
from widelane.facts.intents import load_intents
from widelane.facts.policy import Policy, RungRule, load_policy, policy_settings
from widelane.facts.settings import Setting

__all__ = [
    "Catalog",
    "Policy",
    "RungRule",
    "Setting",
    "catalog",
    "gce_errors",
    "lane_errors",
    "load_catalog",
    "load_intents",
    "load_policy",
    "policy_settings",
]
