"""Training with a parameter server: it holds the weight, a chief and workers fetch it and send their gradients.

Runs in the pods of a TFJob, and knows its place and everybody's address from TF_CONFIG alone. The data lie on y = 3x, so the
chief knows what has to come out, and ends the job when it has.

Standard library only.
"""

import json
import os
import socket
import sys
import threading
import time

SLOPE = 3.0
LEARNING_RATE = 0.2
STEPS = 400
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


class Server:
    """The weight, and one thread for each who asks for it."""

    def __init__(self):
        self.weight, self.lock = 0.0, threading.Lock()

    def serve(self, host, port):
        """Answer until the job ends this pod."""
        own = until_peers_answer(lambda: socket.gethostbyname(host))
        with socket.create_server((own, port)) as listening:
            print(f"the weight is kept at {host}:{port}")
            while True:
                threading.Thread(target=self._answer, args=(listening.accept()[0],), daemon=True).start()

    def _answer(self, peer):
        with peer, peer.makefile("rw") as stream:
            for line in stream:
                with self.lock:
                    self.weight -= LEARNING_RATE * json.loads(line)
                    answer = self.weight
                print(json.dumps(answer), file=stream, flush=True)


def train(role, place, size, host, port):
    """Send the gradient on this one's part of the data, get the weight that all have made; returns the last one."""
    peer = until_peers_answer(
        lambda: socket.create_connection((socket.gethostbyname(host), port), timeout=PEERS_SECONDS)
    )
    xs = [(index * size + place + 1) / (32 * size) for index in range(32)]
    weight, gradient = 0.0, 0.0
    with peer, peer.makefile("rw") as stream:
        for step in range(1, STEPS + 1):
            print(json.dumps(gradient), file=stream, flush=True)
            weight = json.loads(stream.readline())
            gradient = sum(2 * (weight * x - SLOPE * x) * x for x in xs) / len(xs) / size
            if step % 100 == 0:
                print(f"{role}: step {step}, weight {weight:.6f}")
            time.sleep(0.01)
    return weight


def main():
    """The part that TF_CONFIG gives to this pod."""
    config = json.loads(os.environ["TF_CONFIG"])
    cluster, role, index = config["cluster"], config["task"]["type"], config["task"]["index"]
    host, _, port = cluster["ps"][0].partition(":")
    if role == "ps":
        Server().serve(host, int(port))
    trainers = [(name, number) for name in ("chief", "worker") for number in range(len(cluster.get(name, ())))]
    weight = train(f"{role} {index}", trainers.index((role, index)), len(trainers), host, int(port))
    if abs(weight - SLOPE) > 0.01:
        sys.exit(f"the weight is {weight}, not {SLOPE}")
    print(f"checked: weight {weight:.3f} from {len(trainers)} trainers and one parameter server")


if __name__ == "__main__":
    main()
