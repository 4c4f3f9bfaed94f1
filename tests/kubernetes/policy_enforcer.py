"""NetworkPolicies in force on a real node, whose network plug-ins do not know them: as rules of its packet filter, with counters.

As by the plug-ins that enforce them, a pod that a policy selects sends and is sent to only what some policy lets through, answers
excepted, and the node itself (its probes, and the API server, which is not in a pod) reaches every pod.
"""

import subprocess
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from real_node import RealNode

OUT, IN = "LAB-OUT", "LAB-IN"
PAUSE_SECONDS = 0.2
_JUMPS = (
    ("FORWARD", "-m", "conntrack", "--ctstate", "ESTABLISHED,RELATED", "-j", "ACCEPT"),
    ("FORWARD", "-j", OUT),
    ("FORWARD", "-j", IN),
    ("INPUT", "-m", "conntrack", "--ctstate", "ESTABLISHED,RELATED", "-j", "ACCEPT"),
    ("INPUT", "-j", OUT),
)
Manifest = dict[str, Any]


class Enforcer:
    """``hits`` counts packets by policy, direction, the rule's number and port; ``blocked`` those of a pod that were dropped."""

    def __init__(self, node: RealNode, namespace: str) -> None:
        self._node, self._namespace = node, namespace
        self._rules: list[str] = []
        self._counts: Counter[str] = Counter()

    @property
    def rules(self) -> list[str]:
        """As they are in force now."""
        return self._rules

    @property
    def hits(self) -> Counter[str]:
        return Counter({name: n for name, n in self._counts.items() if n and not name.startswith("blocked")})

    @property
    def blocked(self) -> Counter[str]:
        return Counter({name: n for name, n in self._counts.items() if n and name.startswith("blocked")})

    def refresh(self) -> None:
        """Bring the rules up to the pods and policies that there are now."""
        path = f"/namespaces/{self._namespace}"
        policies = self._node.plane.request("GET", f"/apis/networking.k8s.io/v1{path}/networkpolicies")["items"]
        pods = [one for one in self._node.plane.request("GET", f"/api/v1{path}/pods")["items"] if _address(one)]
        rules = [rule for policy in policies for pod in _selected(policy["spec"]["podSelector"], pods)
                 for rule in _rules(policy, pod, pods)]  # fmt: skip
        # What one policy lets through no other takes back.
        rules.sort(key=lambda rule: rule.endswith("DROP"))
        if rules != self._rules:
            self.count()
            self._restore(rules)

    def count(self) -> None:
        """Take in what was counted since the rules were changed."""
        if self._rules:
            said = self._run("iptables-save", "-c", "-t", "filter")
            for line in said.splitlines():
                if line.startswith("[") and (" -A LAB-" in line):
                    name = line.partition('--comment "')[2].partition('"')[0] or _word(line, "--comment")
                    self._counts[name] += int(line[1:].partition(":")[0])
            self._run("iptables", "-Z", OUT)
            self._run("iptables", "-Z", IN)

    def _restore(self, rules: list[str]) -> None:
        text = "\n".join(["*filter", f":{OUT} - [0:0]", f":{IN} - [0:0]", *rules, "COMMIT", ""])
        self._run("iptables-restore", "--noflush", given=text)
        self._rules = rules

    def begin(self) -> None:
        self._restore([])
        for number, (chain, *words) in enumerate(_JUMPS):
            self._run("iptables", "-I", chain, str(number % 3 + 1), *words)

    def end(self) -> None:
        for chain, *words in _JUMPS:
            self._run("iptables", "-D", chain, *words)
        for chain in (OUT, IN):
            self._run("iptables", "-F", chain)
            self._run("iptables", "-X", chain)

    def _run(self, *command: str, given: str | None = None) -> str:
        done = subprocess.run([*self._node.inside, *command], input=given, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{' '.join(command)}: {done.stderr}"
        return done.stdout


@contextmanager
def enforced(node: RealNode, namespace: str) -> Iterator[Enforcer]:
    """The policies of ``namespace`` are in force, for new pods too, until the end of the context."""
    enforcer, over = Enforcer(node, namespace), threading.Event()

    def keep_up() -> None:
        while not over.wait(PAUSE_SECONDS):
            enforcer.refresh()

    enforcer.begin()
    enforcer.refresh()
    keeper = threading.Thread(target=keep_up)
    keeper.start()
    try:
        yield enforcer
    finally:
        over.set()
        keeper.join()
        enforcer.count()
        enforcer.end()


def _rules(policy: Manifest, pod: Manifest, pods: list[Manifest]) -> Iterator[str]:
    name, spec, mine = policy["metadata"]["labels"]["app.kubernetes.io/name"], policy["spec"], _address(pod)
    for chain, word, peers, ours, theirs in ((IN, "ingress", "from", "-d", "-s"), (OUT, "egress", "to", "-s", "-d")):
        if word.capitalize() not in spec["policyTypes"]:
            continue
        for rule in spec.get(word, ()):
            for kind, matching in _ports(rule.get("ports"), pod):
                end = f"{matching}-m comment --comment {name}/{word}/{kind} -j RETURN"
                for peer in _addresses(rule.get(peers), pods):
                    yield f"-A {chain} {ours} {mine} {f'{theirs} {peer} ' if peer else ''}{end}"
        yield f"-A {chain} {ours} {mine} -m comment --comment blocked/{name}/{word} -j DROP"


def _ports(ports: list[Manifest] | None, pod: Manifest) -> Iterator[tuple[str, str]]:
    """What each port is called here, and how it is matched; a rule that names none is for all of them."""
    if not ports:
        yield "any", ""
    for port in ports or ():
        protocol = port.get("protocol", "TCP").lower()
        yield f"{protocol}/{port['port']}", f"-p {protocol} --dport {_number(port['port'], pod)} "


def _addresses(peers: list[Manifest] | None, pods: list[Manifest]) -> list[str]:
    """Of whom a rule speaks; "" for everybody. Namespaces are known by the pods of this one."""
    if not peers:
        return [""]
    return [_address(pod) for peer in peers for pod in _selected(peer.get("podSelector", {}), pods)]


def _selected(selector: Manifest, pods: list[Manifest]) -> list[Manifest]:
    wanted = selector.get("matchLabels", {}).items()
    return [pod for pod in pods if wanted <= pod["metadata"].get("labels", {}).items()]


def _number(port: int | str, pod: Manifest) -> int:
    named = {
        one.get("name"): one["containerPort"] for part in pod["spec"]["containers"] for one in part.get("ports", ())
    }
    return port if isinstance(port, int) else named[port]


def _address(pod: Manifest) -> str:
    return str(pod.get("status", {}).get("podIP") or "")


def _word(line: str, after: str) -> str:
    words = line.split()
    return words[words.index(after) + 1] if after in words else ""
