"""The checks of RunPod: the key, the transport, the account, the catalogue, and whether pods can reach the store."""

from __future__ import annotations

from collections.abc import Mapping

from widelane.config import RunpodSettings, Settings
from widelane.facts import catalog
from widelane.lanes.checkup.sheet import Sheet
from widelane.lanes.runpod.classify import classify
from widelane.lanes.runpod.client import PUBLIC, CallError, Pods, is_loopback
from widelane.lanes.runpod.rest2 import Rest2
from widelane.lanes.runpod.sdk import Sdk
from widelane.models.attempt import Outcome

_WRITE_SECONDS = 20.0
"""Never used: nothing is written."""


def examine(sheet: Sheet, settings: Settings, _place: str, env: Mapping[str, str]) -> None:
    """Read the account and the catalogue."""
    section = settings.runpod or RunpodSettings()
    store = settings.store or ""
    if not is_loopback(section.endpoint) and not store.startswith("gs:"):
        sheet.fail("store", "pods can't reach a folder of this machine", 'set store = "gs://BUCKET"')
    key = env.get(section.key_env, "")
    if not key:
        fix = f"export {section.key_env}=KEY with a key of RunPod's console"
        sheet.fail("credentials", f"the variable {section.key_env} holds no API key", fix)
        return
    pods: Pods = (Sdk if section.transport == "sdk" else Rest2)(section.endpoint or PUBLIC, key, _WRITE_SECONDS)
    try:
        pods.connect()
        if _account(sheet, pods):
            _catalogue(sheet, pods, section.cloud)
    finally:
        pods.close()


def _account(sheet: Sheet, pods: Pods) -> bool:
    try:
        listed = pods.listed()
    except CallError as error:
        failure = classify(error.answer)
        refused = failure.outcome is Outcome.PERMISSION
        fix = failure.hint or "is the network up? https://status.runpod.io tells of outages"
        sheet.fail("credentials" if refused else "reach", f"{failure.code}: {failure.message}", fix)
        return False
    sheet.ok("credentials", f"the key is taken; the account has {len(listed)} pods")
    return True


def _catalogue(sheet: Sheet, pods: Pods, cloud: str) -> None:
    """Types that widelane rents: those that the catalogue has no more, and the widest pod of each."""
    widest: dict[str, str] = {}
    for gpu in (row.gpu for row in catalog().pod_gpus):
        try:
            offer = pods.offer(gpu, 1, cloud)
        except CallError as error:
            failure = classify(error.answer)
            sheet.warn("quotas", f"the catalogue can't be read: {failure.code}", failure.hint or "try again later")
            return
        if offer is not None:
            widest[gpu] = "any width" if offer.most is None else f"up to {offer.most}"
    if widest:
        sheet.ok("quotas", "; ".join(f"{gpu}: {most}" for gpu, most in widest.items()))
    else:
        sheet.warn("quotas", f"the {cloud} cloud has none of the GPU types that are tried", "set another cloud")
