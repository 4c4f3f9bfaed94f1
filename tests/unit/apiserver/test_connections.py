"""Requests over kept connections, against a server of a few lines that says exactly what a test wants it to say."""

import asyncio
import datetime
import ssl
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kubernetes.aio.client import Configuration

from admission.webhooks.certificates import make
from apiserver.access import Access
from apiserver.api import Api, ApiRequest, Refused, Unreachable
from apiserver.connections import BadReply, Chunks, Connections

PLAIN = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"


@asynccontextmanager
async def serving(*answers: Sequence[bytes], tls: ssl.SSLContext | None = None) -> AsyncIterator[SimpleNamespace]:
    """A server that gives these answers, each in its pieces, and none after them; an empty one ends the connection."""
    told = SimpleNamespace(requests=[], writers=[], connections=0, port=0)
    rest = iter(answers)

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        told.connections += 1
        told.writers.append(writer)
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
                told.requests.append((head, await reader.readexactly(length)))
                pieces = next(rest, None)
                if not pieces:
                    if pieces is None:
                        await reader.read()
                    return
                for piece in pieces:
                    writer.write(piece)
                    await asyncio.sleep(0)
        except (EOFError, ConnectionError):
            return
        finally:
            writer.close()

    server = await asyncio.start_server(talk, "127.0.0.1", 0, ssl=tls)
    told.port = server.sockets[0].getsockname()[1]
    try:
        yield told
    finally:
        server.close()
        await server.wait_closed()


def issued(folder: Path) -> ssl.SSLContext:
    """What a server at 127.0.0.1 shows; who vouches for it is in ``ca.crt``."""
    made = make(("127.0.0.1",), datetime.datetime.now(datetime.UTC))
    (folder / "ca.crt").write_bytes(made.authority)
    (folder / "tls.pem").write_bytes(made.serving + made.serving_key)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "tls.pem")
    return context


def connections(port: int) -> Connections:
    return Connections("127.0.0.1", port, f"127.0.0.1:{port}", None)


def api(port: int) -> Api:
    configuration = Configuration(host=f"http://127.0.0.1:{port}/prefix")
    return Api(Access(configuration, None, ""))


@pytest.mark.parametrize(
    ("answer", "code", "body"),
    [
        ([PLAIN], 200, b"{}"),
        ([b"HTTP/1.1 201 Created\r\ncontent-length:", b" 4\r\n", b"\r\nab", b"cd"], 201, b"abcd"),
        (
            [b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n", b"1;x=y\r\nd\r\n0\r\n\r\n"],
            200,
            b"abcd",
        ),
        ([b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\nA: b\r\n\r\n"], 200, b"a"),
        ([b"HTTP/1.1 204 No Content\r\n\r\n"], 204, b""),
        ([b"HTTP/1.1 100 Continue\r\n\r\n", PLAIN], 200, b"{}"),
    ],
)
async def test_a_reply_is_read_however_it_is_cut_and_framed(answer: list[bytes], code: int, body: bytes) -> None:
    async with serving(answer, [PLAIN]) as server:
        pool = connections(server.port)
        reply = await pool.ask("GET", "/a", "", b"")
        assert (reply.code, reply.body) == (code, body)
        assert (await pool.ask("GET", "/b", "", b"")).body == b"{}"
        assert server.connections == 1
        await pool.close()


async def test_requests_at_one_time_have_connections_of_their_own_and_later_ones_take_those() -> None:
    async with serving(*([PLAIN] for _ in range(6))) as server:
        pool = connections(server.port)
        for _ in range(2):
            await asyncio.gather(*(pool.ask("POST", "/a", "", b"x") for _ in range(3)))
        assert (len(server.requests), server.connections) == (6, 3)
        await pool.close()


@pytest.mark.parametrize("last", [[b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}"], []])
async def test_a_connection_that_the_server_ends_is_not_used_again(last: list[bytes]) -> None:
    async with serving([PLAIN], last, [PLAIN]) as server:
        pool = connections(server.port)
        await pool.ask("GET", "/a", "", b"")
        if last:
            assert (await pool.ask("GET", "/b", "", b"")).code == 200
        else:
            with pytest.raises(EOFError):
                await pool.ask("GET", "/b", "", b"")
        await asyncio.sleep(0.01)
        assert (await pool.ask("GET", "/c", "", b"")).code == 200
        assert server.connections == 2
        await pool.close()


@pytest.mark.parametrize(
    "answer",
    [
        b"SSH-2.0-x\r\n\r\n",
        b"HTTP/1.1 what\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nA: " + b"b" * 70_000 + b"\r\n\r\n",
    ],
)
async def test_what_is_no_reply_is_an_error_and_its_connection_is_given_up(answer: bytes) -> None:
    async with serving([answer], [PLAIN]) as server:
        pool = connections(server.port)
        with pytest.raises(BadReply):
            await pool.ask("GET", "/a", "", b"")
        assert (await pool.ask("GET", "/b", "", b"")).code == 200
        assert server.connections == 2
        await pool.close()


async def test_a_request_is_what_was_asked_and_no_name_in_it_can_be_more_than_a_name() -> None:
    async with serving([PLAIN], [PLAIN]) as server, api(server.port) as asked:
        await asked.send(ApiRequest("PATCH", "/api/v1/pods/a", {"b": 1}, {"fieldManager": "x y"}, "application/x"))
        await asked.get("/apis/x/a\r\nEvil: b/ü")
        (head, body), (other, _) = server.requests
        assert head.startswith(b"PATCH /prefix/api/v1/pods/a?fieldManager=x+y HTTP/1.1\r\nHost: 127.0.0.1:")
        assert b"\r\nContent-Type: application/x\r\n" in head and body == b'{"b":1}'
        assert other.startswith(b"GET /prefix/apis/x/a%0D%0AEvil:%20b/%C3%BC HTTP/1.1\r\n")


async def test_a_server_that_ends_without_an_answer_leaves_it_open_what_it_did() -> None:
    async with serving([]) as server, api(server.port) as asked:
        with pytest.raises(Unreachable, match="GET /a: IncompleteReadError"):
            await asked.get("/a")


async def test_an_answer_says_when_to_ask_again() -> None:
    busy = b'HTTP/1.1 429 Too Many Requests\r\nRetry-After: 3\r\nContent-Length: 18\r\n\r\n{"message":"busy"}'
    async with serving([busy]) as server, api(server.port) as asked:
        answer = await asked.get("/a")
        assert (answer.code, answer.retry_after) == (429, 3.0)


async def collected(pool: Connections, silence: float = 5.0) -> tuple[int, bytes]:
    """The code and the whole of a stream."""
    async with pool.stream("/a", "", silence) as (code, pieces):
        return code, b"".join([piece async for piece in pieces])


@pytest.mark.parametrize(
    "answer",
    [
        [b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n", b"2\r\ncd", b"\r\n0\r\n\r\n"],
        [b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\na", b"bcd"],
    ],
)
async def test_a_stream_is_all_that_comes_until_its_end(answer: list[bytes]) -> None:
    async with serving(answer) as server:
        pool = connections(server.port)
        assert await collected(pool) == (200, b"abcd")
        await pool.close()


async def test_a_stream_that_breaks_or_falls_silent_is_an_error() -> None:
    begun = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n"
    async with serving([begun], [begun]) as server:
        pool = connections(server.port)
        with pytest.raises(TimeoutError):
            await collected(pool, silence=0.1)
        broken = asyncio.create_task(collected(pool))
        while len(server.requests) < 2:
            await asyncio.sleep(0.01)
        server.writers[-1].transport.abort()
        with pytest.raises((EOFError, OSError)):
            await broken
        await pool.close()


async def read_lines(asked: Api, silence: float = 5.0) -> list[bytes]:
    """The lines of a stream, until it ends."""
    return [line async for lines in asked.lines("/a", {"watch": "1"}, silence) for line in lines]


async def test_lines_are_whole_however_the_pieces_are_cut() -> None:
    pieces = [b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\na\nb\r\n", b"3\r\nc\nd\r\n", b"0\r\n\r\n"]
    async with serving(pieces) as server, api(server.port) as asked:
        assert await read_lines(asked) == [b"a", b"bc"]
        assert server.requests[0][0].startswith(b"GET /prefix/a?watch=1 HTTP/1.1\r\n")


async def test_a_stream_that_is_refused_says_why() -> None:
    gone = b'HTTP/1.1 410 Gone\r\nContent-Length: 21\r\n\r\n{"message":"it went"}'
    async with serving([gone]) as server, api(server.port) as asked:
        with pytest.raises(Refused) as refused:
            await read_lines(asked)
        assert (refused.value.answer.code, str(refused.value)) == (410, "it went")


async def test_lines_that_do_not_come_or_break_off_are_unreachable() -> None:
    begun = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\na\n\r\n"
    async with serving([begun], []) as server, api(server.port) as asked:
        with pytest.raises(Unreachable, match="TimeoutError"):
            await read_lines(asked, silence=0.1)
        with pytest.raises(Unreachable, match="IncompleteReadError"):
            await read_lines(asked)


@given(st.lists(st.binary(min_size=1, max_size=40), max_size=6), st.data())
def test_chunks_are_taken_out_of_their_frames_however_these_are_cut(chunks: list[bytes], data: st.DataObject) -> None:
    framed = b"".join(b"%x;x=y\r\n%b\r\n" % (len(chunk), chunk) for chunk in chunks) + b"0\r\nTrailer: 1\r\n\r\n"
    cuts = sorted(data.draw(st.sets(st.integers(1, len(framed) - 1))))
    taken, frames = b"", Chunks()
    for begin, end in pairwise((0, *cuts, len(framed))):
        assert not frames.ended
        taken += frames.take(framed[begin:end])
    assert (taken, frames.ended) == (b"".join(chunks), True)


async def test_over_tls_all_connections_have_ended_when_they_are_closed_also_those_in_use(tmp_path: Path) -> None:
    async with serving([PLAIN], tls=issued(tmp_path)) as server:
        trusting = ssl.create_default_context(cafile=str(tmp_path / "ca.crt"))
        pool = Connections("127.0.0.1", server.port, "lab", trusting)
        await pool.ask("GET", "/idle", "", b"")
        asked = [asyncio.create_task(pool.ask("GET", f"/{number}", "", b"")) for number in range(2)]
        streaming = asyncio.create_task(collected(pool))
        while len(server.requests) < 4:
            await asyncio.sleep(0.01)

        async with asyncio.timeout(1):
            await pool.close()

        told = await asyncio.gather(*asked, streaming, return_exceptions=True)
        assert [isinstance(one, EOFError) for one in told] == [True] * 3
        with pytest.raises(ConnectionAbortedError):
            await pool.ask("GET", "/late", "", b"")


def open_ends(port: int) -> tuple[int, int]:
    """How many connections to ``port`` this process has open as a client, and as the server."""
    connected = [one for one in psutil.Process().net_connections("tcp") if one.raddr]
    return sum(one.raddr.port == port for one in connected), sum(one.laddr.port == port for one in connected)


@pytest.mark.parametrize("secure", [False, True])
async def test_a_request_that_is_given_up_at_any_moment_leaves_no_open_connection(tmp_path: Path, secure: bool) -> None:
    """Also at the end of a TLS handshake, when who makes the connection has not been told of it yet."""
    serves = issued(tmp_path) if secure else None
    trusting = ssl.create_default_context(cafile=str(tmp_path / "ca.crt")) if secure else None
    steps, answered = 0, False
    while not answered:
        async with serving([PLAIN], tls=serves) as server:
            pool = Connections("127.0.0.1", server.port, "lab", trusting)
            asked = asyncio.create_task(pool.ask("GET", "/a", "", b""))
            for _ in range(steps):
                await asyncio.sleep(0)
            answered = asked.done()
            asked.cancel()
            await asyncio.wait([asked])
            await pool.close()
            assert open_ends(server.port)[0] == 0, f"given up after {steps} steps"
            await asyncio.sleep(0.01)
            while open_ends(server.port)[1]:
                await asyncio.sleep(0.01)
            steps += 1
