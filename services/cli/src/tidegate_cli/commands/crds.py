"""``tidegate crds``: the definitions that a Kubernetes cluster needs to take the manifests that Tidegate takes."""

import click
import yaml

from admission.domain.definitions import DEFINED, definition
from kube import KINDS
from tidegate_cli.terminal import say


@click.command()
@click.option("--group", default="", help="Only the kinds of this API group, such as batch.volcano.sh.")
def crds(group: str) -> None:
    """Print CustomResourceDefinitions of the kinds of Volcano, Kubeflow, Kueue and Koordinator, for a Kubernetes cluster.

    Where upstream's definitions are installed already they stay: `kubectl create` leaves what is there alone.

    \b
    Examples:
      tidegate crds | kubectl create -f -
      tidegate crds --group kueue.x-k8s.io | kubectl create -f -
    """
    kinds = [kind for kind in DEFINED if group in ("", KINDS[kind].group)]
    if not kinds:
        groups = ", ".join(sorted({KINDS[kind].group for kind in DEFINED}))
        raise click.BadParameter(f"{group!r} is none of {groups}", param_hint="--group")
    dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    say(yaml.dump_all((definition(kind) for kind in kinds), Dumper=dumper, sort_keys=False))
