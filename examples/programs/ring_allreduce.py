"""A ring all-reduce over sockets: the ranks add up their vectors, each talking to its two neighbours only.

Runs in the pods of a Volcano Job with the plugins svc and env. Who its peers are it takes from what they inject: the lists
of hosts in VC_MASTER_HOSTS and VC_WORKER_HOSTS, the same lists in /etc/volcano/*.host, and the pod's own host name.
Every rank knows what the sum has to be and checks each element of it; a wrong one ends the job.

Standard library only. ROUNDS and PAUSE_SECONDS may be set in the manifest.
"""

import operator
import os
import socket
import sys
import threading
import time
from array import array
from pathlib import Path

PORT = 29500
ELEMENTS = 4096
PEERS_SECONDS = 60.0


def hosts(task):
    """The hosts of a task's pods, by index; the file and the variable have to agree."""
    named = [host for host in os.environ[f"VC_{task.upper()}_HOSTS"].split(",") if host]
    file = Path("/etc/volcano") / f"{task}.host"
    if file.exists() and file.read_text().split() != named:
        sys.exit(f"{file} and VC_{task.upper()}_HOSTS name different hosts")
    return named


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


def join_ring(peers, rank):
    """Sockets to the neighbours: one to send to the next rank, one to receive from the one before."""
    own = until_peers_answer(lambda: socket.gethostbyname(peers[rank]))
    with socket.create_server((own, PORT)) as listening:
        following = peers[(rank + 1) % len(peers)]
        to_next = until_peers_answer(lambda: socket.create_connection((following, PORT), timeout=PEERS_SECONDS))
        listening.settimeout(PEERS_SECONDS)
        from_previous, _ = listening.accept()
    from_previous.settimeout(PEERS_SECONDS)
    return to_next, from_previous


def exchange(to_next, from_previous, chunk):
    """Send a chunk on and receive one at the same time, so that no chunk is too large for the sockets' buffers."""
    sending = threading.Thread(target=to_next.sendall, args=(chunk.tobytes(),))
    sending.start()
    data = bytearray()
    while len(data) < len(chunk) * chunk.itemsize:
        part = from_previous.recv(len(chunk) * chunk.itemsize - len(data))
        if not part:
            sys.exit("the rank before this one is gone")
        data += part
    sending.join()
    received = array("d")
    received.frombytes(bytes(data))
    return received


def all_reduce(vector, rank, size, to_next, from_previous):
    """Add up the vectors of all ranks in place: chunks go round once to be summed, and once more to be known to all."""
    length = len(vector) // size

    def chunk(number):
        start = number % size * length
        return slice(start, start + length)

    for step in range(size - 1):
        received = exchange(to_next, from_previous, vector[chunk(rank - step)])
        own = vector[chunk(rank - step - 1)]
        vector[chunk(rank - step - 1)] = array("d", map(operator.add, own, received))
    for step in range(size - 1):
        vector[chunk(rank - step)] = exchange(to_next, from_previous, vector[chunk(rank + 1 - step)])


def main():
    """All rounds, each checked."""
    rounds, pause = int(os.environ.get("ROUNDS", "20")), float(os.environ.get("PAUSE_SECONDS", "0.2"))
    peers = hosts("master") + hosts("worker")
    rank = [host.partition(".")[0] for host in peers].index(os.environ["HOSTNAME"])
    size = len(peers)
    neighbours = join_ring(peers, rank)
    print(f"rank {rank} of {size} ({peers[rank]}) is in the ring, task index {os.environ['VC_TASK_INDEX']}")
    sum_of_ranks = float(size * (size - 1) // 2)
    for number in range(1, rounds + 1):
        # Element i of rank r in round n is r·(i + n): the sum over the ranks is known without asking anybody.
        vector = array("d", (float(rank * (index + number)) for index in range(ELEMENTS * size)))
        all_reduce(vector, rank, size, *neighbours)
        for index, value in enumerate(vector):
            if value != sum_of_ranks * (index + number):
                sys.exit(f"round {number}: element {index} is {value}, not {sum_of_ranks * (index + number)}")
        print(f"round {number} of {rounds}: {len(vector)} sums are right, the first is {vector[0]}")
        time.sleep(pause)
    print(f"checked: sum {sum_of_ranks} over {size} ranks, {rounds} rounds of {len(vector)} values")


if __name__ == "__main__":
    main()
