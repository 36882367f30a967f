"""GETs of the Compute Engine API with the credentials of this environment. There is no other verb in here."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, cast

from widelane.lanes.gcp import answer
from widelane.lanes.gcp.classify import classify
from widelane.lanes.gcp.client import LOGIN, is_loopback
from widelane.models.attempt import Failure

PUBLIC = "https://compute.googleapis.com"
_SECONDS = 15.0
_SCOPE = "https://www.googleapis.com/auth/compute.readonly"


@dataclass(frozen=True, slots=True)
class Got:
    """One answer. `untold`: the service has no such path, which a simulation may not."""

    document: dict[str, Any] = field(default_factory=dict[str, Any])
    date: str = ""
    failure: Failure | None = None
    untold: bool = False


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why there is no token. `passing`: the network is to blame, not the credentials."""

    message: str
    fix: str
    passing: bool = False


class Reads:
    """Documents of one endpoint."""

    def __init__(self, endpoint: str | None) -> None:
        """`endpoint` is None for the public API."""
        self._base = f"{(endpoint or PUBLIC).rstrip('/')}/compute/v1/"
        self._local = is_loopback(endpoint)
        self._session: Any = None

    def login(self) -> Refusal | None:
        """Find credentials and get a token; None when that went well. A simulation needs none."""
        auth: Any = import_module("google.auth")
        anonymous: Any = import_module("google.auth.credentials").AnonymousCredentials
        carrier: Any = import_module("google.auth.transport.requests")
        from google.auth.exceptions import GoogleAuthError, TransportError  # noqa: PLC0415 - loaded with the library

        if self._local:
            self._session = carrier.AuthorizedSession(anonymous())
            self._session.trust_env = False
            return None
        try:
            credentials = auth.default(scopes=[_SCOPE])[0]
            credentials.refresh(carrier.Request())
        except TransportError as error:
            return Refusal(f"no token can be had: {error}", "is the network up? a rehearsal needs none: --sim", True)
        except GoogleAuthError as error:
            return Refusal(f"no usable credentials: {error}", f"run {LOGIN}")
        self._session = carrier.AuthorizedSession(credentials)
        return None

    def get(self, path: str) -> Got:
        """The document at `projects/...`. Never raises for what the service or the network says."""
        from google.auth.exceptions import GoogleAuthError  # noqa: PLC0415 - loaded by the login
        from requests.exceptions import RequestException  # noqa: PLC0415 - as above

        try:
            found = self._session.get(self._base + path, timeout=_SECONDS, allow_redirects=False)
        except (RequestException, GoogleAuthError) as error:
            return Got(failure=classify(answer.transport(type(error).__name__, str(error))))
        date = str(found.headers.get("Date", ""))
        if found.status_code != 200:
            failed = answer.http(found.status_code, found.text)
            untold = found.status_code == 404 and (not failed.parsed or "notSimulated" in failed.reasons)
            return Got(date=date, failure=classify(failed), untold=untold)
        document = _decode(found.text)
        return Got(document=document, date=date)

    def close(self) -> None:
        """Close the connections."""
        if self._session is not None:
            self._session.close()


def _decode(text: str) -> dict[str, Any]:
    """A JSON object; empty for anything else."""
    try:
        found: Any = json.loads(text)
    except ValueError:
        return {}
    return cast("dict[str, Any]", found) if isinstance(found, dict) else {}
