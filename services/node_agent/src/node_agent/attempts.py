"""The starts and ends of a pod's containers: each attempt from its launch to what its shim has written at last."""

import asyncio
import logging
from dataclasses import replace
from functools import partial

from node_agent.domain import records
from node_agent.domain.containers import Container
from node_agent.domain.records import Stage, Termination
from node_agent.needs import NeverPossible, NotYet, fetch_secrets
from node_agent.pod_state import PodState
from node_agent.runtime import ending
from node_agent.runtime.logs import message_of
from node_agent.runtime.processes import is_alive
from node_agent.runtime.shims import ShimState, read_state

_log = logging.getLogger(__name__)

NOT_BEFORE_NEWS = 1 << 53
"""A time to try again that never comes by itself: only another assignment can bring what is missing."""

# What a container ends with whose shim was lost: nobody saw the real code.
LOST_EXIT_CODE = 137
START_ERROR = 128
_CLAIM_SECONDS = 0.02
_MESSAGE_BYTES = 2_048


class Attempts:
    """Starts containers of one pod, and follows them to their end."""

    def __init__(self, state: PodState, notes: dict[str, str]) -> None:
        self._state, self._node, self._notes = state, state.node, notes

    async def start(self, container: Container, attempt: int) -> None:
        """Launch an attempt that the record says is starting."""
        state, name = self._state, container.name
        try:
            secrets = await fetch_secrets(self._node, state.manifest)
            prepared = state.preparation.prepare(container, attempt, secrets)
            self._notes |= prepared.notes
            news = await self._node.launcher.launch(prepared.request)
        except NotYet as error:
            soon = self._node.clock() + self._node.settings.secret_retry_ms
            retry_at = soon if error.again else NOT_BEFORE_NEWS
            state.set(name, records.blocked(state.get(name), error.reason, str(error), retry_at))
        except NeverPossible as error:
            self._give_up(name, error)
        except OSError as error:
            state.set(name, records.ended(state.get(name), self._unstarted("StartError", str(error))))
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            _log.exception("pod_not_understood", extra={"uid": state.pod.uid, "container": name})
            self._refuse(name, "InvalidPod", f"container {name}: the manifest cannot be read: {error!r}")
        else:
            written = read_state(state.folder.state(name, attempt))
            self._take_up(name, attempt, written or ShimState.read(news))
            return
        state.step()

    def find_again(self, name: str, rebooted: bool) -> None:
        """Go on with a container that was alive when the agent was last seen; ``rebooted``: the machine has forgotten it."""
        record = self._state.get(name)
        found = read_state(self._state.folder.state(name, record.attempt))
        if rebooted and (found is None or found.end is None):
            message = f"the machine was started anew while container {name} ran"
            self._end(name, Termination(LOST_EXIT_CODE, "NodeRebooted", message, record.started_at, self._node.clock()))
        elif found is None and record.stage is Stage.STARTING:
            # Not known to be started: asked again, for the shim's claim lets only one of both requests through.
            self._node.run(self.start(self._state.container(name), record.attempt))
        else:
            self._take_up(name, record.attempt, found)

    def _take_up(self, name: str, attempt: int, found: ShimState | None) -> None:
        """Go on from the state that a shim has written."""
        if not self._is_current(name, attempt):
            return
        if found is None or found.shim == 0:
            self._node.run(self._lost(name, attempt))
            return
        self._note_start(name, found)
        if found.end is not None:
            self._end(name, found.end)
        elif found.process is None and is_alive(found.shim, found.shim_started):
            # Claimed by a shim that a predecessor of this agent asked for, and about to be started.
            file, loop = self._state.folder.state(name, attempt), asyncio.get_running_loop()
            loop.call_later(_CLAIM_SECONDS, lambda: self._take_up(name, attempt, read_state(file)))
        else:
            self._node.watch.add(found.shim, found.shim_started, partial(self._shim_ended, name, attempt))
            self._state.step()

    def _shim_ended(self, name: str, attempt: int) -> None:
        if not self._is_current(name, attempt):
            return
        found = read_state(self._state.folder.state(name, attempt))
        if found is None or found.end is None:
            self._node.run(self._lost(name, attempt))
            return
        self._note_start(name, found)
        self._end(name, found.end)

    async def _lost(self, name: str, attempt: int) -> None:
        """The shim is gone without a word: end what it watched over, and count the container as failed."""
        state = self._state
        found = read_state(state.folder.state(name, attempt))
        process = found.process if found else None
        await ending.end_all(process, state.pod.uid, self._node.isolation.cgroups, state.group(name))
        if self._is_current(name, attempt):
            message = (
                f"the process that watched over container {name} was lost; all processes of the container were killed"
            )
            started_at, now = state.get(name).started_at, self._node.clock()
            self._end(name, Termination(LOST_EXIT_CODE, "ShimLost", message, started_at, now))

    def _note_start(self, name: str, found: ShimState) -> None:
        record = self._state.get(name)
        if found.process is not None and record.stage is Stage.STARTING:
            container = self._state.container(name)
            # The shim goes by the machine's own time, which may have been set.
            started_at = min(found.started_at, self._node.clock())
            self._state.set(name, records.launched(record, container, found.process, started_at))

    def _end(self, name: str, end: Termination) -> None:
        state = self._state
        if end.exit_code and not end.message and self._wants_log(name):
            end = replace(end, message=message_of(state.preparation.log_file(name), _MESSAGE_BYTES))
        record, now = state.get(name), self._node.clock()
        end = replace(end, started_at=min(end.started_at, now), finished_at=min(end.finished_at, now))
        state.folder.state(name, record.attempt - 1).unlink(missing_ok=True)
        state.set(name, records.ended(record, end))
        state.step()

    def _wants_log(self, name: str) -> bool:
        manifest = self._state.preparation.container_manifest(name)
        return bool(manifest.get("terminationMessagePolicy") == "FallbackToLogsOnError")

    def _give_up(self, name: str, error: NeverPossible) -> None:
        """A pod that is to run for ever waits, as for an image that cannot be had: failed, its owner would only make the next.

        One that is to end has failed.
        """
        if self._state.preparation.restart_policy == "Always":
            self._state.set(name, records.blocked(self._state.get(name), error.reason, str(error), NOT_BEFORE_NEWS))
        else:
            self._refuse(name, error.reason, str(error))

    def _refuse(self, name: str, reason: str, message: str) -> None:
        """The container, and with it the pod, cannot be run on this node."""
        self._state.set(name, records.ended(self._state.get(name), self._unstarted(reason, message)))
        self._state.fail(reason, message)

    def _unstarted(self, reason: str, message: str) -> Termination:
        return Termination(START_ERROR, reason, message, 0, self._node.clock())

    def _is_current(self, name: str, attempt: int) -> bool:
        record = self._state.get(name)
        return record.attempt == attempt and record.alive
