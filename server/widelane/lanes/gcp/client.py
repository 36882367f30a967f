"""The calls of Compute Engine that the lane makes, as JSON documents in the wire's own spelling.

Only here is google-cloud-compute used. It is imported with the first call (it takes one to two seconds), and
only its `*_unary` methods are called: the others build an operations client of their own, aimed at the public
endpoint whatever ours is. Every call has a time-out and none is retried by the library.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from widelane.errors import ConfigError, LaneAuthError, LaneError
from widelane.lanes.gcp import answer
from widelane.lanes.gcp.answer import Answer

Document = dict[str, Any]

WRITE_SECONDS = 60.0
READ_SECONDS = 20.0
LOGIN = "gcloud auth application-default login"
_LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})


class CallError(LaneError):
    """A call that failed; `answer` is what came back, not judged yet."""

    code = "call_failed"

    def __init__(self, failed: Answer) -> None:
        super().__init__("gcp", failed.text or failed.items[0].message or failed.items[0].code)
        self.answer = failed


def is_loopback(endpoint: str | None) -> bool:
    """Whether an endpoint is on this host: a simulation, spoken to without credentials."""
    return endpoint is not None and urlsplit(endpoint).hostname in _LOOPBACK


@dataclass(frozen=True, slots=True)
class _Services:
    """The library and its clients. It isn't typed well enough for a strict check, so it ends here."""

    library: Any
    instances: Any
    operations: Any
    regions: Any
    projects: Any


class Compute:
    """One project of Compute Engine. Shared by all threads; connects when first used."""

    def __init__(self, project: str, endpoint: str | None = None, credentials: object | None = None) -> None:
        """`credentials`: of google.auth, in place of the ones found in the environment."""
        self.project = project
        self._credentials = credentials
        self.endpoint = endpoint
        self._lock = threading.Lock()
        self._services: _Services | None = None

    def connect(self) -> None:
        """Import the library and find credentials.

        Raises:
            ConfigError: the library isn't installed.
            LaneAuthError: there are no credentials.
        """
        self._connected()

    def close(self) -> None:
        """Close the connections; a later call opens new ones."""
        with self._lock:
            services, self._services = self._services, None
        if services is not None:
            for client in (services.instances, services.operations, services.regions, services.projects):
                client.transport.close()

    def insert(self, zone: str, body: Document, request_id: str) -> Document:
        """Send one instances.insert; the operation as it stands."""
        services = self._connected()
        resource = services.library.Instance.from_json(json.dumps(body))
        return self._call(
            services.instances.insert_unary,
            WRITE_SECONDS,
            zone=zone,
            instance_resource=resource,
            request_id=request_id,
        )

    def delete(self, zone: str, name: str) -> Document:
        """Send one instances.delete; the operation as it stands."""
        return self._call(self._connected().instances.delete_unary, WRITE_SECONDS, zone=zone, instance=name)

    def operation(self, zone: str, name: str) -> Document:
        """Read one zone operation."""
        return self._call(self._connected().operations.get, READ_SECONDS, zone=zone, operation=name)

    def operations(self, zone: str, filters: str) -> list[Document]:
        """List the zone's operations that pass the filter."""
        services = self._connected()
        request = {"project": self.project, "zone": zone, "filter": filters}
        with _caught():
            return [
                _document(found)
                for found in services.operations.list(request=request, timeout=READ_SECONDS, retry=None)
            ]

    def instance(self, zone: str, name: str) -> Document:
        """Read one instance."""
        return self._call(self._connected().instances.get, READ_SECONDS, zone=zone, instance=name)

    def instances(self, filters: str) -> list[Document]:
        """List the instances of every zone that pass the filter."""
        services = self._connected()
        request = {"project": self.project, "filter": filters}
        with _caught():
            pages = services.instances.aggregated_list(request=request, timeout=READ_SECONDS, retry=None)
            return [_document(found) for _, scoped in pages for found in scoped.instances]

    def guest_attributes(self, zone: str, name: str, path: str) -> Document:
        """Read the guest attributes of one instance below `path` ("namespace/key")."""
        method = self._connected().instances.get_guest_attributes
        return self._call(method, READ_SECONDS, zone=zone, instance=name, query_path=path)

    def region(self, name: str) -> Document:
        """Read one region with its quotas."""
        return self._call(self._connected().regions.get, READ_SECONDS, region=name)

    def project_document(self) -> Document:
        """Read the project with its global quotas."""
        return self._call(self._connected().projects.get, READ_SECONDS)

    def _call(self, method: Any, seconds: float, **request: object) -> Document:
        with _caught():
            return _document(method(request={"project": self.project, **request}, timeout=seconds, retry=None))

    def _connected(self) -> _Services:
        with self._lock:
            if self._services is None:
                self._services = _open(self.endpoint, self._credentials)
            return self._services


def _open(endpoint: str | None, given: object | None) -> _Services:
    try:
        from google.auth import credentials  # noqa: PLC0415 - only a call may pay for the import
        from google.auth.exceptions import GoogleAuthError  # noqa: PLC0415 - as above
        from google.cloud import compute_v1  # noqa: PLC0415 - as above
    except ImportError as missing:
        raise ConfigError("the gcp lane needs google-cloud-compute", hint="pip install 'widelane[gcp]'") from missing
    options: Document = {}
    if endpoint is not None:
        options["client_options"] = {"api_endpoint": endpoint}
    if given is not None:
        options["credentials"] = given
    elif is_loopback(endpoint):
        anonymous: Any = credentials.AnonymousCredentials
        options["credentials"] = anonymous()
        options["client_options"]["universe_domain"] = "googleapis.com"
    try:
        return _Services(
            library=compute_v1,
            instances=compute_v1.InstancesClient(**options),
            operations=compute_v1.ZoneOperationsClient(**options),
            regions=compute_v1.RegionsClient(**options),
            projects=compute_v1.ProjectsClient(**options),
        )
    except GoogleAuthError as error:
        raise LaneAuthError(
            "gcp", f"no usable Google Cloud credentials: {error}", hint=f"run {LOGIN}, or rehearse with --sim"
        ) from error


@contextmanager
def _caught() -> Generator[None]:
    """Turn every failure of a call into CallError, or LaneAuthError when no token could be had."""
    from google.api_core.exceptions import GoogleAPICallError  # noqa: PLC0415 - loaded with the library
    from google.auth.exceptions import GoogleAuthError, TransportError  # noqa: PLC0415 - as above
    from google.protobuf.json_format import ParseError  # noqa: PLC0415 - as above
    from requests.exceptions import RequestException  # noqa: PLC0415 - as above

    try:
        yield
    except GoogleAPICallError as error:
        raise CallError(_http_answer(error)) from error
    except (RequestException, TransportError, ParseError) as error:
        raise CallError(answer.transport(type(error).__name__, str(error))) from error
    except GoogleAuthError as error:
        raise LaneAuthError("gcp", str(error), hint=f"run {LOGIN}") from error


def _http_answer(error: Any) -> Answer:
    text = getattr(error.response, "text", None)
    if isinstance(text, str):
        return answer.http(int(error.code or error.response.status_code), text)
    return answer.http(int(error.code or 500), {"error": {"message": str(error.message), "errors": list(error.errors)}})


def _document(message: Any) -> Document:
    made: Document = message.__class__.to_dict(
        message,
        use_integers_for_enums=False,
        preserving_proto_field_name=False,
        always_print_fields_with_no_presence=False,
    )
    return made
