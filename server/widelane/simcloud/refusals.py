"""What the simulated service says when it refuses: HTTP errors, and errors of operations.

The words are those of the error table in `facts` (a test compares them).
"""

from __future__ import annotations

from http import HTTPStatus

from widelane.models.catalog import MachineType
from widelane.simcloud.quota import Shortfall
from widelane.simcloud.records import Json
from widelane.simcloud.scenario import Combination


class Refused(Exception):
    """An HTTP error answer: status and body."""

    def __init__(self, status: int, body: Json) -> None:
        super().__init__(body["error"]["message"])
        self.status = status
        self.body = body


def http(status: int, message: str, reason: str) -> Refused:
    """The classic error body."""
    error = {"message": message, "domain": "global", "reason": reason}
    return Refused(status, {"error": {"code": status, "message": message, "errors": [error]}})


def invalid(field: str, value: object, why: str) -> Refused:
    """HTTP 400 about one field of the request, in the service's usual form."""
    return http(400, f"Invalid value for field '{field}': '{value}'. {why}", "invalid")


def bad_request(message: str) -> Refused:
    """HTTP 400 about a combination of fields."""
    return http(400, message, "badRequest")


def not_found(path: str) -> Refused:
    """HTTP 404; `path` is projects/..."""
    return http(404, f"The resource '{path}' was not found", "notFound")


def already_exists(path: str) -> Refused:
    """HTTP 409."""
    return http(409, f"The resource '{path}' already exists", "alreadyExists")


def not_offered(zone: str, machine_type: str) -> Refused:
    """HTTP 400: the zone doesn't list that machine type."""
    return invalid(
        "resource.machineType",
        f"zones/{zone}/machineTypes/{machine_type}",
        f"Machine type with name '{machine_type}' does not exist in zone '{zone}'.",
    )


def unauthenticated() -> Refused:
    """HTTP 401: the bearer token isn't one that a metadata server gave out, or it expired."""
    message = (
        "Request had invalid authentication credentials. "
        "Expected OAuth 2 access token, login cookie or other valid authentication credential."
    )
    refused = http(401, message, "authError")
    refused.body["error"]["status"] = "UNAUTHENTICATED"
    refused.body["error"]["errors"][0].update({"locationType": "header", "location": "Authorization"})
    return refused


def out_of_scope() -> Refused:
    """HTTP 403: the VM's service account lacks the scope."""
    return http(
        403, "Insufficient Permission: Request had insufficient authentication scopes.", "insufficientPermissions"
    )


def stockout(project: str, wanted: Combination, row: MachineType, elsewhere: tuple[str, ...]) -> Json:
    """The end of an insert that found no stock; `elsewhere` are zones that have some."""
    gpus = f" with {row.gpus} {row.gpu} accelerator(s)" if row.gpus else ""
    hint = ""
    if elsewhere:
        hint = (
            f"Consider trying your request in the {', '.join(elsewhere)} zone(s), "
            "which currently has capacity to accommodate your request. "
        )
    message = (
        f"A {row.name} VM instance{gpus} is currently unavailable in the {wanted.zone} zone. {hint}"
        "Alternatively, you can try your request again with a different VM hardware configuration or at a later time. "
        "For more information, see the troubleshooting documentation."
    )
    link = {
        "description": "Troubleshooting documentation",
        "url": "https://cloud.google.com/compute/docs/resource-error",
    }
    metadatas = {
        "attachment": f"{row.gpu}:{row.gpus}" if row.gpus else "",
        "vmType": row.name,
        "zone": wanted.zone,
        "zonesAvailable": ",".join(elsewhere),
    }
    info = {"reason": "resource_availability", "domain": "compute.googleapis.com", "metadatas": metadatas}
    return failure(
        503,
        "ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS",
        f"The zone 'projects/{project}/zones/{wanted.zone}' does not have enough resources available to fulfill the "
        "request.  'NULL:0/NULL:0/NULL:0 (state:STOCKOUT, sub-state:STOCKOUT, resource type:compute)'.",
        {"help": {"links": [link]}},
        {"localizedMessage": {"locale": "en-US", "message": message}},
        {"errorInfo": info},
    )


def quota_exceeded(short: Shortfall) -> Json:
    """The end of an insert that a quota refused."""
    where = f"in region {short.region}" if short.region else "globally"
    scope = "project-region" if short.region else "project"
    info = {
        "metricName": f"compute.googleapis.com/{_METRIC_NAMES.get(short.metric, short.metric.lower())}",
        "limitName": f"{short.metric.replace('_', '-')}-per-{scope}",
        "dimensions": {"region": short.region} if short.region else {"global": "global"},
        "limit": short.limit,
    }
    message = f"Quota '{short.metric}' exceeded.  Limit: {short.limit:.1f} {where}."
    return failure(403, "QUOTA_EXCEEDED", message, {"quotaInfo": info})


_METRIC_NAMES = {"SSD_TOTAL_GB": "ssd_total_storage"}


def cancelled(path: str) -> Json:
    """The end of an insert whose instance was deleted before it ran. The code is a guess, unlike the others."""
    return failure(
        400, "OPERATION_CANCELED_BY_USER", f"The resource '{path}' was deleted before its creation completed."
    )


def failure(status: int, code: str, message: str, *details: Json) -> Json:
    """How an operation ends that failed: HTTP status and one error."""
    error: Json = {"code": code, "message": message}
    if details:
        error["errorDetails"] = list(details)
    return {"status": status, "errors": [error]}


def phrase(status: int) -> str:
    """SERVICE UNAVAILABLE for 503."""
    return HTTPStatus(status).phrase.upper()
