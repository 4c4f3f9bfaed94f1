"""Data-parallel training: every rank has a part of the data, and after each step all of them share one gradient.

Runs in the pods of a PyTorchJob and meets by what the job injects: MASTER_ADDR, MASTER_PORT, RANK, WORLD_SIZE; in those of a
TrainJob by torchrun's names for the same. With torch installed torch.distributed adds up the gradients; without it the same
contract is kept with sockets, and the standard library is enough. The data lie on y = 3x, so every rank knows what has to
come out.

STEPS and PAUSE_SECONDS may be set in the manifest.
"""

import json
import os
import socket
import sys
import time

SLOPE = 3.0
LEARNING_RATE = 0.5
SAMPLES_PER_RANK = 32
PEERS_SECONDS = 60.0


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


class Sockets:
    """All ranks by way of rank 0: it listens at the master's address, and adds up what each of the others sends."""

    name = "sockets of the standard library"

    def __init__(self, rank, size, address, port):
        self.rank, self.peers = rank, []
        if rank == 0:
            with socket.create_server((address, port)) as listening:
                listening.settimeout(PEERS_SECONDS)
                self.peers = [listening.accept()[0] for _ in range(size - 1)]
        else:
            self.peers = [until_peers_answer(lambda: socket.create_connection((address, port), PEERS_SECONDS))]
        self.streams = [peer.makefile("rw") for peer in self.peers]

    def all_reduce(self, value):
        """The sum over all ranks."""
        if self.rank:
            return self._send_and_hear(value)
        total = value + sum(json.loads(stream.readline()) for stream in self.streams)
        for stream in self.streams:
            print(json.dumps(total), file=stream, flush=True)
        return total

    def leave(self):
        """Give the connections up."""
        for connection in (*self.streams, *self.peers):
            connection.close()

    def _send_and_hear(self, value):
        print(json.dumps(value), file=self.streams[0], flush=True)
        return json.loads(self.streams[0].readline())


class Torch:
    """All ranks by way of torch.distributed."""

    name = "torch.distributed (gloo)"

    def __init__(self, torch, rank, size, address, port):
        self.torch = torch
        # The address instead of the name: not every library asks where this machine keeps the pods' names.
        method = f"tcp://{address}:{port}"
        torch.distributed.init_process_group("gloo", init_method=method, rank=rank, world_size=size)

    def all_reduce(self, value):
        """The sum over all ranks."""
        tensor = self.torch.tensor([value], dtype=self.torch.float64)
        self.torch.distributed.all_reduce(tensor)
        return float(tensor[0])

    def leave(self):
        """End the threads of the group, which would else be cut off with the program."""
        self.torch.distributed.destroy_process_group()


def injected(name, torchruns_name):
    """What the job injected into this pod, under either name."""
    return os.environ.get(name) or os.environ[torchruns_name]


def meet():
    """The group of all ranks."""
    rank, size = int(injected("RANK", "PET_NODE_RANK")), int(injected("WORLD_SIZE", "PET_NNODES"))
    host, port = injected("MASTER_ADDR", "PET_MASTER_ADDR"), int(injected("MASTER_PORT", "PET_MASTER_PORT"))
    address = until_peers_answer(lambda: socket.gethostbyname(host))
    try:
        import torch
        import torch.distributed
    except ImportError:
        return rank, size, Sockets(rank, size, address, port)
    return rank, size, Torch(torch, rank, size, address, port)


def main():
    """Gradient descent on this rank's part of the data, with the gradient of all."""
    steps, pause = int(os.environ.get("STEPS", "20")), float(os.environ.get("PAUSE_SECONDS", "0.2"))
    rank, size, group = meet()
    print(f"rank {rank} of {size} met the others at {injected('MASTER_ADDR', 'PET_MASTER_ADDR')} by {group.name}")
    total = size * SAMPLES_PER_RANK
    xs = [(rank * SAMPLES_PER_RANK + index + 1) / total for index in range(SAMPLES_PER_RANK)]
    weight = 0.0
    for step in range(1, steps + 1):
        gradient = group.all_reduce(sum(2 * (weight * x - SLOPE * x) * x for x in xs)) / total
        weight -= LEARNING_RATE * gradient
        print(f"step {step} of {steps}: weight {weight:.6f}")
        time.sleep(pause)
    if abs(weight - SLOPE) > 0.01:
        sys.exit(f"the weight is {weight} after {steps} steps, not {SLOPE}")
    everybody = group.all_reduce(weight)
    if abs(everybody - size * weight) > 1e-9:
        sys.exit("the ranks do not have the same weight")
    group.leave()
    print(f"checked: weight {weight:.3f} on {size} ranks after {steps} steps, by {group.name}")


if __name__ == "__main__":
    main()
