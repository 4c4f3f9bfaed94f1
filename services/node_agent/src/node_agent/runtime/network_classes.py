"""Puts classes of network traffic in force on the uplink: asks what is there, and changes what differs.

Programs do it, and are waited for: so this works in a thread. Whole or not at all: where one step fails, the device gets back
what the kernel gives it.
"""

import logging
import subprocess
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

from node_agent.domain.colocation.groups import Group
from node_agent.domain.colocation.network import NetworkPlan
from node_agent.domain.colocation.network_rules import Uplink
from node_agent.runtime.guard import Run
from node_agent.runtime.network_commands import (
    NFT,
    TABLE,
    TC,
    Sockets,
    found,
    ours,
    shaping,
    somebody_elses,
    sorting,
    undoing,
)

_log = logging.getLogger(__name__)

MOUNT = Path("/sys/fs/cgroup")
"""Where ``nft`` looks for control groups."""
MOST_SECONDS = 10.0

Wanted = tuple[NetworkPlan | None, Sockets]


class NotInForce(Exception):
    """What could not be done, in words."""


class NetworkClasses:
    """What is in force of a plan. ``missing`` says why it is not, where it is not."""

    def __init__(self, folder: Callable[[Group], str | None], uplink: Uplink | None, mount: Path = MOUNT) -> None:
        """``folder`` tells where a group is, below ``uplink.below``; with None nothing is ever asked or done."""
        self._folder, self._uplink, self._mount = folder, uplink, mount
        self._tc, self._nft = (found(TC), found(NFT)) if uplink is not None else (None, None)
        self._asked: Wanted | None = None
        self._next: Wanted | None = None
        """What the thread does next; None where it has done all."""
        self._stands: Wanted | None = None
        """What was put in force last; None where it is not known what is."""
        self._device = ""
        """Which has our classes now, or may have."""
        self._shown: tuple[str, ...] = ()
        """What the programs said of it when it was put in force."""
        self._working: threading.Thread | None = None
        self._lock, self._busy = threading.Lock(), False
        self.missing = ""

    def undo(self, plan: NetworkPlan | None) -> tuple[Run, ...]:
        """What takes everything back, whoever does it: that of ``plan``, and what may be in force before it is."""
        devices = {plan.device if plan is not None else "", self._device} - {""}
        if self._tc is None:
            return ()
        return tuple(Run(words) for device in sorted(devices) for words in undoing(self._tc, self._nft, device))

    def start(self, plan: NetworkPlan | None, look: bool = False) -> None:
        """Bring the uplink to ``plan``, beside all else; with ``look`` also where it should be so already."""
        if self._tc is None:
            return
        wanted = plan, self._sockets(plan)
        if wanted != self._asked or (look and plan is not None):
            with self._lock:
                self._asked = self._next = wanted
                if not self._busy:
                    self._busy = True
                    self._working = threading.Thread(target=self._work, name="network_classes", daemon=True)
                    self._working.start()

    def write(self, plan: NetworkPlan | None) -> None:
        """The same, and wait for it."""
        if plan is not None or self._device or self._asked is None or self._busy:
            self.start(plan, look=True)
        self.wait()

    def wait(self) -> None:
        """Until nothing goes on any more."""
        if self._working is not None:
            self._working.join()

    def forget(self) -> None:
        """Somebody else has taken everything back."""
        self._asked = self._stands = None

    def _work(self) -> None:
        while True:
            with self._lock:
                wanted, self._next = self._next, None
                if wanted is None:
                    self._busy = False
                    return
            self._write(*wanted)

    def _sockets(self, plan: NetworkPlan | None) -> Sockets:
        """The groups that are there: one that is gone makes ``nft`` refuse all."""
        below = self._uplink.below if self._uplink is not None else ""
        found: dict[int, tuple[str, ...]] = {}
        for minor, groups in plan.groups.items() if plan is not None else ():
            paths = [f"{below}/{folder}".strip("/") for group in groups if (folder := self._folder(group)) is not None]
            found[minor] = tuple(path for path in paths if (self._mount / path).is_dir())
        return found

    def _write(self, plan: NetworkPlan | None, sockets: Sockets) -> None:
        try:
            there = self._do([self._tc or TC, "qdisc", "show"])
            for device in {*ours(there), self._device} - {plan.device if plan is not None else "", ""}:
                self._take_back(device)
            if plan is None:
                self._device = ""
            else:
                self._put(plan, sockets, there)
        except (NotInForce, OSError, ValueError, subprocess.TimeoutExpired) as error:
            if plan is not None:
                self._take_back(plan.device)
            self._note(str(error))
        else:
            self._note("")
        self._stands = plan, sockets

    def _put(self, plan: NetworkPlan, sockets: Sockets, there: str) -> None:
        if other := somebody_elses(there, plan.device):
            raise NotInForce(f"somebody has given {plan.device} a queueing discipline of his own: {other}")
        if (plan, sockets) == self._stands and self._shown and self._show(plan.device) == self._shown:
            return
        self._device = plan.device
        classes = self._do([self._tc or TC, "class", "show", "dev", plan.device])
        self._do([self._tc or TC, "-batch", "-"], shaping(plan, there, classes))
        by = self._uplink.sorting if self._uplink is not None else Uplink().sorting
        self._do([self._nft or NFT, "-f", "-"], sorting(plan, by, sockets))
        self._shown = self._show(plan.device)

    def _show(self, device: str) -> tuple[str, ...]:
        classes = [self._tc or TC, "class", "show", "dev", device]
        return tuple(self._try(words) for words in (classes, [self._nft or NFT, "list", "table", *TABLE.split()]))

    def _take_back(self, device: str) -> None:
        for words in undoing(self._tc or TC, self._nft, device):
            self._try(words)  # one that is not there is refused
        self._shown = ()
        if self._device == device:
            self._device = ""

    def _try(self, words: Sequence[str]) -> str:
        """What the program says; nothing where it fails."""
        try:
            return self._do(words)
        except (NotInForce, OSError, ValueError, subprocess.TimeoutExpired):
            return ""

    def _do(self, words: Sequence[str], said: str = "") -> str:
        done = subprocess.run(words, input=said, capture_output=True, text=True, timeout=MOST_SECONDS, check=False)
        if done.returncode:
            lines = done.stderr.strip().splitlines() or [f"ended with {done.returncode}"]
            raise NotInForce(f"{Path(words[0]).name}: {lines[0]}")
        return done.stdout

    def _note(self, missing: str) -> None:
        if missing and missing != self.missing:
            _log.warning("network_not_shared_out", extra={"missing": missing})
        self.missing = missing
