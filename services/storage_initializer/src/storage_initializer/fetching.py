"""From where a model comes, by what its address begins with."""

import re
import shutil
from pathlib import Path
from urllib.parse import unquote

from storage_initializer import http_source, hub_source, local_source, s3_source
from storage_initializer.archives import is_archive, unpack
from storage_initializer.failures import FetchError
from storage_initializer.staging import Staging

KNOWN = "file://, s3://, hf://, http://, https://, and pvc:// which is mounted"
_REFUSED = {
    "gs": "its interoperability endpoint speaks S3: s3://BUCKET/PATH with https://storage.googleapis.com as the endpoint",
    "hdfs": "a WebHDFS gateway serves files by https://",
    "webhdfs": "a WebHDFS gateway serves files by https://",
    "oci": "copy the model out of the image, to a claim or a bucket",
    "pvc": "a claim is mounted into the pod, and nothing is fetched",
}
_AZURE = re.compile(r"https://[^/]+\.(blob|file)\.(core\.windows\.net|storage\.azure\.net)/")


def fetch(uri: str, folder: Path) -> None:
    """See that the model of ``uri`` lies in ``folder``, all of it or nothing. Raises FetchError."""
    scheme, colon, rest = uri.partition("://")
    refused = _REFUSED.get(scheme) if colon else None
    if refused is not None or _AZURE.match(uri):
        what = "Azure's storage" if refused is None else f"{scheme}://"
        raise FetchError(
            f"{uri}: {what} is not fetched here; {refused or 'a signed address of one file is not either'}"
        )
    folder.mkdir(parents=True, exist_ok=True)
    staging = Staging(uri, folder)
    if scheme in ("http", "https") and colon:
        http_source.fetch(uri, staging)
    elif scheme == "s3" and colon:
        s3_source.fetch(uri, staging)
    elif scheme == "hf" and colon:
        hub_source.fetch(uri, staging)
        shutil.rmtree(staging.root / ".cache", ignore_errors=True)  # the client's own notes
    elif scheme == "file" or not colon:
        local_source.fetch(Path(unquote(rest) if colon else uri), staging)
    else:
        staging.root.rmdir()
        raise FetchError(f"{uri}: {scheme}:// is not known; known are {KNOWN}")
    _publish(staging)


def _publish(staging: Staging) -> None:
    """A model that is one archive is what is in it. One that cannot be unpacked is fetched anew the next time."""
    files = [file for file in staging.root.rglob("*") if file.is_file()]
    if len(files) != 1 or files[0].is_symlink() or not is_archive(files[0].name):
        staging.publish(staging.root)
        return
    unpacked = staging.unpacked()
    try:
        unpack(files[0], unpacked)
    except FetchError:
        staging.discard(unpacked)
        raise
    staging.publish(unpacked)
