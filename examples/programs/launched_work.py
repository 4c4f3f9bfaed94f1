"""Pi, computed by the workers of an MPIJob and put together by its launcher.

The launcher finds its workers in the hostfile that the job mounts, as mpirun does. It is not mpirun: no SSH server is
needed, because the workers run this program themselves and are given their part through a socket. Where the image has Open
MPI and sshd, leave the worker's command out and let the launcher call mpirun: the hostfile and the keys are there.

Standard library only.
"""

import json
import math
import os
import socket
import sys
import time
from pathlib import Path

PORT = 29600
INTERVALS = 400_000
PEERS_SECONDS = 60.0
# Where a machine cannot mount a volume for a pod, a variable names its folder.
HOSTFILE = Path(os.environ.get("TIDEGATE_VOLUME_MPI_JOB_CONFIG", "/etc/mpi")) / "hostfile"


def until_peers_answer(attempt):
    """Try again while a name does not resolve yet or nobody listens yet: the pods of a gang start side by side."""
    give_up = time.monotonic() + PEERS_SECONDS
    while True:
        try:
            return attempt()
        except OSError:
            if time.monotonic() > give_up:
                raise
            time.sleep(0.05)


def work():
    """Compute what the launcher sends, until the job ends this pod."""
    own = until_peers_answer(lambda: socket.gethostbyname(os.environ["HOSTNAME"]))
    with socket.create_server((own, PORT)) as listening:
        while True:
            peer, _ = listening.accept()
            with peer, peer.makefile("rw") as stream:
                place, size = json.loads(stream.readline())
                print(f"part {place + 1} of {size}")
                middles = ((index + 0.5) / INTERVALS for index in range(place, INTERVALS, size))
                print(json.dumps(sum(4 / (1 + x * x) for x in middles) / INTERVALS), file=stream, flush=True)


def launch():
    """Give every host of the hostfile its part, and add up what comes back."""
    hosts = [line.split()[0] for line in HOSTFILE.read_text().splitlines() if line.strip()]
    streams = []
    for place, host in enumerate(hosts):
        address = until_peers_answer(lambda host=host: socket.gethostbyname(host))
        peer = until_peers_answer(lambda address=address: socket.create_connection((address, PORT), PEERS_SECONDS))
        streams.append(peer.makefile("rw"))
        print(json.dumps([place, len(hosts)]), file=streams[-1], flush=True)
        print(f"part {place + 1} goes to {host}")
    found = sum(json.loads(stream.readline()) for stream in streams)
    if abs(found - math.pi) > 1e-9:
        sys.exit(f"{found} is not pi")
    print(f"checked: pi is {found:.9f}, computed by {len(hosts)} workers")


if __name__ == "__main__":
    launch() if os.environ["K_MPI_JOB_ROLE"] == "launcher" else work()
