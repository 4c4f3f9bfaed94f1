"""Gives a cluster the definitions of the kinds that it lacks: ``python -m admission.definitions``, as a pod with the right to.

Definitions that are there already and are not ours, upstream's for instance, stay as they are; nothing is ever deleted.
With ``--serving-runtimes`` it gets runtimes for models, too: those that are there, of whomever, stay as they are.
"""

import argparse
import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import yaml

from admission.domain.definitions import DEFINED, definition
from apiserver import Answer, Api, ApiRequest, NoAccess, Unreachable, load
from kube import Manifest

PATH = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
LABEL, OURS = "app.kubernetes.io/part-of", "tidegate"
"""What tells our own definitions from others'."""
NOT_FOUND, CONFLICT = 404, 409
NOT_YET = (NOT_FOUND, 429, 500, 503)
"""What a server answers while it prepares a kind that was just defined, or while a webhook is on its way."""
TRIES = 5
RUNTIMES = Path(__file__).with_name("serving_runtimes.yaml")
RUNTIME_PATH = "/apis/serving.kserve.io/v1alpha1/clusterservingruntimes"
PATIENT_SECONDS = 60


class Refused(Exception):
    """The API server did not take a definition; the text says why."""


async def install(api: Api) -> AsyncIterator[str]:
    """Define all kinds; for each a sentence that says what came of it. Raises Refused, Unreachable."""
    for kind in DEFINED:
        wanted = definition(kind)
        yield f"{wanted['metadata']['name']}: {await _define(api, wanted)}"


async def _define(api: Api, wanted: Manifest) -> str:
    """Tried again when somebody else changes it in the same moment."""
    path = f"{PATH}/{wanted['metadata']['name']}"
    for _ in range(TRIES):
        found = await api.get(path)
        if found.code == NOT_FOUND:
            made = await api.send(ApiRequest("POST", PATH, wanted))
            said = "defined"
        else:
            there = _good(found).body
            if (there["metadata"].get("labels") or {}).get(LABEL) != OURS:
                return "is there, and is left as it is"
            metadata = {**there["metadata"], **wanted["metadata"]}
            made = await api.send(ApiRequest("PUT", path, {**wanted, "metadata": metadata}))
            same = made.ok and made.body["metadata"]["resourceVersion"] == metadata["resourceVersion"]
            said = "is there, and the same" if same else "brought up to date"
        if made.code != CONFLICT:
            _good(made)
            return said
    raise Refused(f"{path}: it is changed by somebody else all the time")


async def install_runtimes(api: Api) -> AsyncIterator[str]:
    """Make the runtimes; for each a sentence that says what came of it. Raises Refused, Unreachable."""
    for wanted in yaml.safe_load_all(RUNTIMES.read_text()):
        yield f"{wanted['metadata']['name']}: {await _make(api, wanted)}"


async def _make(api: Api, wanted: Manifest) -> str:
    made = await api.send(ApiRequest("POST", RUNTIME_PATH, wanted))
    for _ in range(PATIENT_SECONDS):
        if made.code not in NOT_YET:
            break
        await asyncio.sleep(1)
        made = await api.send(ApiRequest("POST", RUNTIME_PATH, wanted))
    if made.code == CONFLICT:
        return "is there, and is left as it is"
    _good(made)
    return "made"


def _good(answer: Answer) -> Answer:
    if not answer.ok:
        raise Refused(answer.message)
    return answer


async def _run(kubeconfig: Path | None, *, runtimes: bool) -> None:
    async with Api(await load(kubeconfig)) as api:
        async for said in install(api):
            print(said)
        if runtimes:
            async for said in install_runtimes(api):
                print(said)


def main() -> None:
    """Define the kinds in the cluster of the kubeconfig that is given, else in the one in which this runs as a pod."""
    parser = argparse.ArgumentParser(description="Give a cluster the definitions of the kinds that it lacks.")
    parser.add_argument("kubeconfig", nargs="?", type=Path)
    parser.add_argument("--serving-runtimes", action="store_true", help="and the runtimes for models that it lacks")
    given = parser.parse_args()
    try:
        asyncio.run(_run(given.kubeconfig, runtimes=given.serving_runtimes))
    except (NoAccess, Refused, Unreachable) as error:
        raise SystemExit(str(error)) from None


if __name__ == "__main__":
    main()
