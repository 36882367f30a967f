"""A Cloud Storage bucket as a store, by google-cloud-storage with this user's credentials.

Only here is that library used, and it is imported with the first call. Hosts have a client of their own
(`runner/host/bucket.py`), with which this one shares its URLs and its meaning.
"""

from __future__ import annotations

import base64
import errno
import hashlib
import os
import secrets
from collections.abc import Generator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from widelane.errors import ConfigError
from widelane.runner.host.bucket import join_url, split_url
from widelane.runner.host.store import CorruptError, StoreMissingError, check_key

_SECONDS = 60.0
_LOGIN = "gcloud auth application-default login"
_OCTETS = "application/octet-stream"
_NO_BUCKET = "bucket does not exist"


class BucketError(OSError):
    """What the service or the library said; `hint` is what to do about it."""

    def __init__(self, message: str, hint: str = "", number: int = errno.EIO) -> None:
        super().__init__(number, message)
        self.hint = hint


class CloudBucket:
    """A bucket, or the part of it below a prefix. Opens no connection before its first call."""

    def __init__(self, url: str) -> None:
        """Raises `StoreUrlError`."""
        self._bucket, self._prefix, self._endpoint = split_url(url)

    @property
    def url(self) -> str:
        """The URL that opens it again."""
        return join_url(self._bucket, self._prefix, self._endpoint)

    def put(self, key: str, data: bytes, durable: bool = True) -> None:
        """Write or overwrite."""
        with self._caught():
            self._blob(key).upload_from_string(data, content_type=_OCTETS, timeout=_SECONDS)

    def put_file(self, key: str, path: Path, sha256: str = "") -> None:
        """Copy a file in; the service refuses it when it isn't what was read before the upload."""
        md5 = _digests(path, sha256)
        with self._caught():
            blob = self._blob(key)
            blob.md5_hash = base64.b64encode(md5).decode()
            blob.upload_from_filename(str(path), content_type=_OCTETS, timeout=_SECONDS)

    def put_if_absent(self, key: str, data: bytes) -> bool:
        """First writer wins, by a condition that the service checks as it writes."""
        from google.api_core.exceptions import PreconditionFailed  # noqa: PLC0415 - loaded with the library

        with self._caught():
            try:
                self._blob(key).upload_from_string(
                    data, content_type=_OCTETS, timeout=_SECONDS, if_generation_match=0, retry=None
                )
            except PreconditionFailed:
                return False
            except _doubtful() as error:
                return self._after_doubt(key, data, error)
            return True

    def get(self, key: str) -> bytes:
        """The value."""
        with self._caught():
            data: bytes = self._blob(key).download_as_bytes(timeout=_SECONDS)
            return data

    def get_to(self, key: str, path: Path, sha256: str = "") -> None:
        """Write the value beside `path`, check it, and rename it there."""
        path.parent.mkdir(parents=True, exist_ok=True)
        temp = path.parent / f".tmp-{os.getpid()}-{secrets.token_hex(6)}"
        try:
            with self._caught():
                self._blob(key).download_to_filename(str(temp), timeout=_SECONDS)
            with temp.open("rb") as source:
                found = hashlib.file_digest(source, "sha256").hexdigest() if sha256 else ""
            if found != sha256:
                raise CorruptError(errno.EIO, f"content has sha256 {found}, not {sha256}", key)
            temp.replace(path)
        finally:
            temp.unlink(missing_ok=True)

    def exists(self, key: str) -> bool:
        """Whether the key is there."""
        with self._caught():
            return bool(self._blob(key).exists(timeout=_SECONDS))

    def list(self, prefix: str) -> list[str]:
        """The keys that start with `prefix`, sorted."""
        above = f"{self._prefix}/" if self._prefix else ""
        with self._caught():
            found = _client(self._endpoint).list_blobs(
                self._bucket, prefix=above + prefix, fields="items(name),nextPageToken", timeout=_SECONDS
            )
            return sorted(blob.name[len(above) :] for blob in found)

    def _blob(self, key: str) -> Any:
        check_key(key)
        name = f"{self._prefix}/{key}" if self._prefix else key
        return _client(self._endpoint).bucket(self._bucket).blob(name)

    def _after_doubt(self, key: str, data: bytes, error: Exception) -> bool:
        """The answer was lost: the key shows whose write came first. Without one, nothing was written."""
        try:
            return self.get(key) == data
        except StoreMissingError:
            raise error from None

    @contextmanager
    def _caught(self) -> Generator[None]:
        """Turn every failure of the library into one of the store's."""
        _library()
        broken: Any = import_module("google.cloud.storage.exceptions")
        from google.api_core import exceptions as api  # noqa: PLC0415 - loaded with the library
        from google.auth.exceptions import GoogleAuthError  # noqa: PLC0415 - as above
        from requests.exceptions import RequestException  # noqa: PLC0415 - as above

        try:
            yield
        except api.NotFound as error:
            if _NO_BUCKET in str(error).lower():
                hint = f"make it: gcloud storage buckets create gs://{self._bucket}"
                raise BucketError(f"there is no bucket {self._bucket}", hint) from error
            raise StoreMissingError(errno.ENOENT, "not in the store") from error
        except GoogleAuthError as error:
            raise BucketError(f"no usable Google Cloud credentials: {error}", f"run {_LOGIN}", errno.EACCES) from error
        except (api.Forbidden, api.Unauthorized) as error:
            hint = f"roles/storage.objectUser on gs://{self._bucket} lets you read and write it; or run {_LOGIN}"
            raise BucketError(str(error), hint, errno.EACCES) from error
        except (api.GoogleAPICallError, RequestException, broken.InvalidResponse, broken.DataCorruption) as error:
            raise BucketError(f"bucket {self._bucket}: {error}") from error


def _doubtful() -> tuple[type[Exception], ...]:
    """What a write may have taken effect behind."""
    from google.api_core.exceptions import ServerError  # noqa: PLC0415 - loaded with the library
    from requests.exceptions import RequestException  # noqa: PLC0415 - as above

    return (ServerError, RequestException)


def _digests(path: Path, sha256: str) -> bytes:
    """MD5 of a file. Raises `CorruptError` when its SHA-256 isn't the one expected."""
    md5, sha = hashlib.md5(usedforsecurity=False), hashlib.sha256()
    with path.open("rb") as source:
        for chunk in iter(lambda: source.read(1 << 20), b""):
            md5.update(chunk)
            sha.update(chunk)
    if sha256 and sha.hexdigest() != sha256:
        raise CorruptError(errno.EIO, "changed before it was copied", str(path))
    return md5.digest()


def _library() -> Any:
    try:
        return import_module("google.cloud.storage")  # only a call may pay for it; it has no types
    except ImportError as missing:
        raise ConfigError("a gs:// store needs google-cloud-storage", hint="pip install 'widelane[gcp]'") from missing


@cache
def _client(endpoint: str) -> Any:
    """One client for all buckets: it keeps the connections and the token."""
    library = _library()
    if not endpoint:
        return library.Client(project=None)
    from google.auth.credentials import AnonymousCredentials  # noqa: PLC0415 - loaded with the library

    anonymous: Any = AnonymousCredentials
    return library.Client(project=None, credentials=anonymous(), client_options={"api_endpoint": endpoint})
