"""The images of this checkout in real containers; skipped, visibly, where no Docker daemon is reachable."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tidegate.services import SERVICES

HERE = str(Path(__file__).parent)
if HERE not in sys.path:
    sys.path.insert(0, HERE)


@pytest.fixture(scope="session")
def base() -> Iterator[str]:
    """A daemon, and the image there that others are built on."""
    import images
    from daemon import NoDocker, daemon
    from testcontainers.core.config import testcontainers_config

    # The one that clears up after a test that was killed is an image of its own, which not everybody can have.
    testcontainers_config.ryuk_disabled = True
    try:
        with daemon():
            yield images.base()
    except NoDocker as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def built(base: str) -> dict[str, str]:
    """All images, built: their names by service, and by ``nats``."""
    import images

    return {service: images.build(service, base) for service in ("nats", *SERVICES)}
