"""``hf://``: a repository of Hugging Face's hub, by its own client. HF_ENDPOINT and HF_TOKEN are the client's own."""

import os
from pathlib import PurePosixPath

from storage_initializer.failures import FetchError, Interrupted
from storage_initializer.retries import insist
from storage_initializer.room import saying_full
from storage_initializer.staging import Staging


def fetch(uri: str, staging: Staging) -> None:
    """Fetch the repository that ``hf://OWNER/NAME[:REVISION]`` names. Raises FetchError."""
    owner, slash, rest = uri.removeprefix("hf://").strip("/").partition("/")
    name, _, revision = rest.partition(":")
    if not (owner and slash and name) or len(PurePosixPath(name).parts) != 1:
        raise FetchError(f"{uri} is not hf://OWNER/NAME or hf://OWNER/NAME:REVISION")
    insist(
        lambda: _go_on(f"{owner}/{name}", revision or None, uri, staging),
        uri,
        lambda: sum(file.stat().st_size for file in staging.root.rglob("*") if file.is_file()),
    )


def _go_on(repository: str, revision: str | None, uri: str, staging: Staging) -> None:
    """The client itself goes on with files that it has a part of."""
    for unwanted in ("HF_HUB_DISABLE_PROGRESS_BARS", "HF_HUB_DISABLE_TELEMETRY"):  # read when it is imported
        os.environ.setdefault(unwanted, "1")
    os.environ.setdefault("HF_HOME", str(staging.root / ".cache" / "home"))  # there may be no other place to write
    try:
        from huggingface_hub import snapshot_download
        from huggingface_hub.errors import (
            GatedRepoError,
            HfHubHTTPError,
            LocalEntryNotFoundError,
            RepositoryNotFoundError,
            RevisionNotFoundError,
        )
    except ImportError:
        raise FetchError("hf:// needs the package huggingface_hub: run `tidegate install storage`") from None
    try:
        with saying_full(staging.root):
            snapshot_download(repository, revision=revision, local_dir=staging.root)
    except GatedRepoError:
        raise FetchError(
            f"{uri}: its owner lets in only who was let in: set HF_TOKEN by a Secret of the ServiceAccount"
        ) from None
    except RepositoryNotFoundError:
        raise FetchError(f"{uri}: there is no such repository, or it is private and HF_TOKEN is not set") from None
    except RevisionNotFoundError:
        raise FetchError(f"{uri}: the repository has no revision {revision}") from None
    except LocalEntryNotFoundError as error:
        raise Interrupted(_first_line(error)) from None
    except HfHubHTTPError as error:
        if error.response is not None and error.response.status_code < 500 and error.response.status_code != 429:
            raise FetchError(f"{uri}: {_first_line(error)}") from None
        raise Interrupted(_first_line(error)) from None
    except OSError as error:
        if error.errno is None or isinstance(error, ConnectionError | TimeoutError):
            raise Interrupted(_first_line(error)) from None
        raise


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
