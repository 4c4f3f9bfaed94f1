"""A line to a server that is cut after so many bytes, or hangs there."""

import socket
import threading
from types import TracebackType


class CutLine:
    """Carries connections to ``port``. Each answer that is longer than the first of ``cuts`` takes that one and is cut there.

    With ``hangs`` it is not cut but held. ``carried`` counts the bytes of answers.
    """

    def __init__(self, port: int) -> None:
        self._port = port
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = self._listening.getsockname()[1]
        self.cuts: list[int] = []
        self.hangs = False
        self.reached, self.let_go = threading.Event(), threading.Event()
        self.carried = 0
        self._threads: list[threading.Thread] = []

    def __enter__(self) -> "CutLine":
        self._run(self._accept)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.let_go.set()
        self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        for thread in self._threads:
            thread.join(30)

    def _run(self, work: object, *arguments: object) -> None:
        thread = threading.Thread(target=work, args=arguments, daemon=True)  # type: ignore[arg-type]
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listening.accept()
            except OSError:
                return
            server = socket.create_connection(("127.0.0.1", self._port))
            self._run(self._carry, client, server, False)
            self._run(self._carry, server, client, True)

    def _carry(self, source: socket.socket, target: socket.socket, counted: bool) -> None:
        came = 0
        try:
            while data := source.recv(65_536):
                if counted and self.cuts and came + len(data) > self.cuts[0]:
                    data = data[: max(0, self.cuts.pop(0) - came)]
                    target.sendall(data)
                    self.carried += len(data)
                    self.reached.set()
                    if self.hangs:
                        self.let_go.wait(60)
                    break
                target.sendall(data)
                came += len(data)
                self.carried += len(data) if counted else 0
        except OSError:
            pass
        for end in (source, target):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
        source.close()
