"""A Cloud Storage bucket as a store, by its JSON API over plain HTTP.

Uploads that may only be the first are conditional (`ifGenerationMatch=0`), which the service decides in one place: of
any number of writers one wins. A write whose answer was lost is found out about by reading the key.
"""

from __future__ import annotations

import base64
import contextlib
import errno
import hashlib
import http.client
import json
import os
import re
import secrets
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Any, BinaryIO, Callable, Optional, TypeVar
from urllib.parse import quote, unquote, urlencode, urlsplit

from .store import CHUNK, CorruptError, StoreMissingError, StoreUrlError, check_key, copy

PUBLIC = "https://storage.googleapis.com"
PART = 16 << 20
"""Larger files are sent in parts of so many bytes; a part that is lost is sent again from where it broke."""
_BUCKET = re.compile(r"[a-z0-9][a-z0-9._-]{1,220}[a-z0-9]")
_LOOPBACK = ("127.0.0.1", "localhost", "::1")
_SECONDS = 60.0
_PASSING = frozenset({401, 408, 429, 500, 502, 503, 504})
_PAUSES = (0.2, 1.0, 3.0)
_RATHER_NEW = 60.0
_BY_LIBRARY = (
    "import google.auth, google.auth.transport.requests as way\n"
    "found, _ = google.auth.default(scopes=['https://www.googleapis.com/auth/devstorage.read_write'])\n"
    "found.refresh(way.Request())\n"
    "print(found.token)"
)
_LOGINS = (
    (sys.executable, "-c", _BY_LIBRARY),
    ("gcloud", "auth", "application-default", "print-access-token"),
)
"""Programs that print a token of whoever logged in; where neither is installed, there is none."""
_LOGIN_LASTS = 600.0

T = TypeVar("T")
Reply = tuple[bytes, Mapping[str, str]]


def split_url(url: str) -> tuple[str, str, str]:
    """(bucket, prefix, endpoint) of `gs://BUCKET[/PREFIX][?endpoint=URL]`.

    An endpoint must be on this host: tokens go there. Raises `StoreUrlError`.
    """
    parts = urlsplit(url)
    bucket, prefix = parts.netloc, unquote(parts.path).strip("/")
    if parts.scheme != "gs" or parts.fragment or not _BUCKET.fullmatch(bucket):
        raise StoreUrlError(f"{url!r}: a bucket is gs://BUCKET or gs://BUCKET/PREFIX")
    if prefix:
        check_key(prefix)
    name, _, endpoint = parts.query.partition("=")
    endpoint = unquote(endpoint).rstrip("/")
    if parts.query and (name != "endpoint" or urlsplit(endpoint).hostname not in _LOOPBACK):
        raise StoreUrlError(f"{url!r}: all that may follow ? is endpoint= and the URL of an emulator on this host")
    return bucket, prefix, endpoint


def join_url(bucket: str, prefix: str, endpoint: str) -> str:
    """The URL that `split_url` takes apart."""
    url = f"gs://{bucket}/{quote(prefix)}" if prefix else f"gs://{bucket}"
    return f"{url}?endpoint={endpoint}" if endpoint else url


class Tokens:
    """Access tokens of this host: of its own service account on Google Cloud, elsewhere of whoever logged in."""

    def __init__(self, metadata_host: str = "") -> None:
        self._metadata_host = metadata_host or os.environ.get("GCE_METADATA_HOST", "")
        if not self._metadata_host and _on_google_cloud():
            self._metadata_host = "metadata.google.internal"
        self._lock = Lock()
        self._token = ""
        self._until = 0.0

    @property
    def of_a_machine(self) -> bool:
        """Whether they are a service account's, from a metadata server."""
        return bool(self._metadata_host)

    def get(self) -> str:
        """One that is good for a minute at least. Raises OSError when none can be had."""
        with self._lock:
            if time.monotonic() > self._until:
                token, lasts = self._fetch()
                self._token, self._until = token, time.monotonic() + lasts - _RATHER_NEW
            return self._token

    def refused(self, token: str) -> None:
        """The service didn't take that one: fetch another next time."""
        with self._lock:
            if token == self._token:
                self._until = 0.0

    def _fetch(self) -> tuple[str, float]:
        if self._metadata_host:
            return metadata_token(self._metadata_host)
        for command in _LOGINS:
            with contextlib.suppress(OSError, subprocess.SubprocessError):
                done = subprocess.run(
                    command, stdin=subprocess.DEVNULL, capture_output=True, timeout=_SECONDS, check=True
                )
                return done.stdout.decode().strip(), _LOGIN_LASTS
        text = "this host has no Google Cloud credentials: no metadata server, and nobody is logged in"
        raise PermissionError(errno.EACCES, text)


def metadata_token(host: str) -> tuple[str, float]:
    """(token, seconds that it lasts) from the metadata server. Raises OSError."""
    request = urllib.request.Request(
        f"http://{host}/computeMetadata/v1/instance/service-accounts/default/token",
        headers={"Metadata-Flavor": "Google"},
    )
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with direct.open(request, timeout=10.0) as answer:
        told: dict[str, Any] = json.loads(answer.read())
    return str(told["access_token"]), float(told["expires_in"])


class BucketStore:
    """A bucket, or the part of it below a prefix."""

    def __init__(self, url: str, tokens: Optional[Tokens] = None, pause: Callable[[float], None] = time.sleep) -> None:
        """Raises `StoreUrlError`."""
        self._bucket, self._prefix, endpoint = split_url(url)
        self._emulated = endpoint
        self._endpoint = endpoint or PUBLIC
        self._tokens = tokens or Tokens()
        self._pause = pause

    @property
    def url(self) -> str:
        """The URL that opens it again."""
        return join_url(self._bucket, self._prefix, self._emulated)

    def put(self, key: str, data: bytes, durable: bool = True) -> None:
        """Write or overwrite."""
        self._again(lambda: self._upload(key, data))

    def put_file(self, key: str, path: Path, sha256: str = "") -> None:
        """Copy a file in; the service refuses it when it isn't what was read before the upload."""
        md5, size = hashlib.md5(usedforsecurity=False), 0
        with path.open("rb") as source:
            found = copy(_Watched(source, md5.update), None)
            size = source.tell()
        if sha256 and found != sha256:
            raise CorruptError(errno.EIO, "changed before it was copied", str(path))
        if size <= PART:
            self._again(lambda: self._upload(key, path.read_bytes(), md5=md5.digest()))
        else:
            self._again(lambda: self._upload_parts(key, path, size, md5.digest()))

    def put_if_absent(self, key: str, data: bytes) -> bool:
        """First writer wins, by a condition that the service checks as it writes."""
        doubt = False

        def attempt() -> bool:
            nonlocal doubt
            try:
                self._upload(key, data, first=True)
            except urllib.error.HTTPError as error:
                if error.code == 412:
                    # Our own write may have been taken although its answer never came.
                    return doubt and self._again(lambda: self._download(key)) == data
                doubt = doubt or error.code >= 500
                raise
            except (OSError, http.client.HTTPException):
                doubt = True
                raise
            return True

        return self._again(attempt)

    def get(self, key: str) -> bytes:
        """The value."""
        return self._again(lambda: self._download(key))

    def get_to(self, key: str, path: Path, sha256: str = "") -> None:
        """Write the value beside `path`, check it, and rename it there."""
        path.parent.mkdir(parents=True, exist_ok=True)
        temp = path.parent / f".tmp-{os.getpid()}-{secrets.token_hex(6)}"
        try:
            found = self._again(lambda: self._download_to(key, temp))
            if sha256 and found != sha256:
                raise CorruptError(errno.EIO, f"content has sha256 {found}, not {sha256}", key)
            temp.replace(path)
        finally:
            with contextlib.suppress(FileNotFoundError):
                temp.unlink()

    def exists(self, key: str) -> bool:
        """Whether the key is there."""
        try:
            self._again(lambda: self._call("GET", self._object(key) + "?fields=name"))
        except StoreMissingError:
            return False
        return True

    def list(self, prefix: str) -> list[str]:
        """The keys that start with `prefix`, sorted."""
        skip = len(self._name("x")) - 1
        whole = self._name("x")[:-1] + prefix
        asked = {"prefix": whole, "fields": "items(name),nextPageToken"}
        found: list[str] = []
        while True:
            page: dict[str, Any] = json.loads(self._again(partial(self._page, dict(asked))))
            found.extend(item["name"][skip:] for item in page.get("items", ()))
            if not page.get("nextPageToken"):
                return sorted(found)
            asked["pageToken"] = page["nextPageToken"]

    def _page(self, asked: dict[str, str]) -> bytes:
        return self._call("GET", f"{self._endpoint}/storage/v1/b/{self._bucket}/o?{urlencode(asked)}")[0]

    def _name(self, key: str) -> str:
        return f"{self._prefix}/{key}" if self._prefix else key

    def _object(self, key: str) -> str:
        return f"{self._endpoint}/storage/v1/b/{self._bucket}/o/{quote(self._name(check_key(key)), safe='')}"

    def _uploads(self, kind: str, first: bool = False) -> str:
        condition = "&ifGenerationMatch=0" if first else ""
        return f"{self._endpoint}/upload/storage/v1/b/{self._bucket}/o?uploadType={kind}{condition}"

    def _upload(self, key: str, data: bytes, *, first: bool = False, md5: bytes = b"") -> None:
        """In one request. Raises HTTPError 412 when `first` and the key is there."""
        digest = md5 or hashlib.md5(data, usedforsecurity=False).digest()
        edge = secrets.token_hex(16)
        meta = _described(self._name(check_key(key)), digest)
        body = b"".join(
            (
                f"--{edge}\r\nContent-Type: application/json\r\n\r\n".encode(),
                meta,
                f"\r\n--{edge}\r\nContent-Type: application/octet-stream\r\n\r\n".encode(),
                data,
                f"\r\n--{edge}--\r\n".encode(),
            )
        )
        self._call("POST", self._uploads("multipart", first), body, f"multipart/related; boundary={edge}")

    def _upload_parts(self, key: str, path: Path, size: int, md5: bytes) -> None:
        meta = _described(self._name(check_key(key)), md5)
        begun = self._call("POST", self._uploads("resumable"), meta, "application/json")[1]
        session = begun["Location"]
        with path.open("rb") as source:
            sent, stuck = 0, 0
            while sent < size:
                source.seek(sent)
                part = source.read(PART)
                if not part:
                    raise CorruptError(errno.EIO, "shrank while it was copied", str(path))
                kept = self._again(partial(self._send_part, session, part, sent, size))
                stuck = 0 if kept > sent else stuck + 1
                if stuck > len(_PAUSES):
                    raise OSError(errno.EIO, f"bucket {self._bucket}: the upload of {path} makes no way")
                sent = kept

    def _send_part(self, session: str, part: bytes, at: int, size: int) -> int:
        """How far the upload is after this part; where it broke, the service is asked how much it has."""
        span = f"bytes {at}-{at + len(part) - 1}/{size}"
        try:
            return self._part(session, part, span, size)
        except urllib.error.HTTPError as error:
            if error.code not in _PASSING:
                raise
        except (OSError, http.client.HTTPException):
            pass
        self._pause(_PAUSES[0])
        return self._part(session, b"", f"bytes */{size}", size)

    def _part(self, session: str, part: bytes, span: str, size: int) -> int:
        request = urllib.request.Request(session, data=part, method="PUT", headers={"Content-Range": span})
        try:
            with urllib.request.urlopen(request, timeout=_SECONDS) as answer:
                answer.read()
            return size
        except urllib.error.HTTPError as error:
            if error.code != 308:
                raise
            kept = re.fullmatch(r"bytes=0-(\d+)", error.headers.get("Range") or "")
            return int(kept.group(1)) + 1 if kept else 0

    def _download(self, key: str) -> bytes:
        return self._call("GET", self._object(key) + "?alt=media")[0]

    def _download_to(self, key: str, temp: Path) -> str:
        with self._open("GET", self._object(key) + "?alt=media") as answer, temp.open("wb") as target:
            return copy(answer, target)

    def _call(self, method: str, url: str, data: Optional[bytes] = None, kind: str = "") -> Reply:
        with self._open(method, url, data, kind) as answer:
            body: bytes = answer.read()
            return body, answer.headers

    def _open(self, method: str, url: str, data: Optional[bytes] = None, kind: str = "") -> Any:
        headers = {"Content-Type": kind} if kind else {}
        token = self._token()
        if token:
            headers["Authorization"] = f"Bearer {token}"
        try:
            return urllib.request.urlopen(
                urllib.request.Request(url, data=data, method=method, headers=headers), timeout=_SECONDS
            )
        except urllib.error.HTTPError as error:
            if error.code == 401:
                self._tokens.refused(token)
            raise

    def _token(self) -> str:
        """An emulator takes everybody, and is shown no token of a person."""
        return "" if self._emulated and not self._tokens.of_a_machine else self._tokens.get()

    def _again(self, act: Callable[[], T]) -> T:
        """Do it, again after a failure that may pass; what remains becomes one of the store's errors."""
        for pause in (*_PAUSES, None):
            try:
                return act()
            except urllib.error.HTTPError as error:
                if pause is None or error.code not in _PASSING:
                    raise self._failure(error) from error
            except (StoreMissingError, CorruptError, PermissionError):
                raise
            except (OSError, http.client.HTTPException) as error:
                if pause is None:
                    raise OSError(errno.EIO, f"the bucket doesn't answer: {error}") from error
            self._pause(pause)
        raise AssertionError("the last try either returns or raises")

    def _failure(self, error: urllib.error.HTTPError) -> OSError:
        said = error.read(2000).decode(errors="replace")
        with contextlib.suppress(ValueError, KeyError, TypeError):
            said = json.loads(said)["error"]["message"]
        if error.code == 404 and "bucket does not exist" not in said.lower():
            return StoreMissingError(errno.ENOENT, "not in the store")
        number = errno.EACCES if error.code in (401, 403) else errno.EIO
        return OSError(number, f"bucket {self._bucket}: HTTP {error.code} {said.strip()}")


class _Watched:
    """A source that shows what passes to somebody else."""

    def __init__(self, source: BinaryIO, show: Callable[[bytes], object]) -> None:
        self._source = source
        self._show = show

    def read(self, size: int = CHUNK, /) -> bytes:
        """At most `size` bytes."""
        data = self._source.read(size)
        self._show(data)
        return data


def _described(name: str, md5: bytes) -> bytes:
    return json.dumps({"name": name, "md5Hash": base64.b64encode(md5).decode()}).encode()


def _on_google_cloud() -> bool:
    if os.environ.get("NO_GCE_CHECK", "").lower() == "true":
        return False
    with contextlib.suppress(OSError):
        return Path("/sys/class/dmi/id/product_name").read_text(errors="replace").startswith("Google")
    return False
