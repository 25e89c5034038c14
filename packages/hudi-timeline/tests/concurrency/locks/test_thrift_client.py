"""Calls of a Thrift service: what is sent, and answers that are cut, junk, or another's."""

import socket
import struct
import threading

import pytest

from hudi_timeline.concurrency.locks.thrift_client import (
    BOOL,
    I32,
    I64,
    LIST,
    STRING,
    STRUCT,
    RefusedError,
    ThriftClient,
    ThriftError,
)


def text(value):
    return struct.pack(">i", len(value)) + value


def message(body, *, kind=2, name=b"lock", number=1):
    return struct.pack(">I", 0x80010000 | kind) + text(name) + struct.pack(">i", number) + body


def field(kind, number, value):
    return struct.pack(">bh", kind, number) + value


LOCKED = field(I64, 1, struct.pack(">q", 7)) + field(I32, 2, struct.pack(">i", 1)) + b"\0"
ANSWER = message(field(STRUCT, 0, LOCKED) + b"\0")


@pytest.fixture
def service():
    """A service that gives these bytes for the first call, and what it was asked."""
    listener = socket.create_server(("127.0.0.1", 0))
    asked, threads, clients = [], [], []

    def answer(data):
        def serve():
            connection, _ = listener.accept()
            with connection:
                asked.append(connection.recv(1 << 16))
                connection.sendall(data)

        threads.append(threading.Thread(target=serve))
        threads[-1].start()
        clients.append(ThriftClient("127.0.0.1", listener.getsockname()[1], 30))
        return clients[-1]

    answer.asked = asked
    yield answer
    for client in clients:
        client.close()
    for thread in threads:
        thread.join(30)
    listener.close()


def test_a_call_is_what_the_protocol_says(service):
    given = [(1, LIST, (STRUCT, [[(1, I32, 3), (4, STRING, "t")]])), (2, BOOL, True)]
    assert service(ANSWER).call("lock", (1, STRUCT, given)) == {1: 7, 2: 1}
    component = field(I32, 1, struct.pack(">i", 3)) + field(STRING, 4, text(b"t")) + b"\0"
    request = field(LIST, 1, struct.pack(">bi", STRUCT, 1) + component) + field(BOOL, 2, b"\1") + b"\0"
    assert service.asked == [message(field(STRUCT, 1, request) + b"\0", kind=1)]


def test_every_type_of_an_answer_is_read(service):
    body = (
        field(2, 1, b"\1") + field(3, 2, b"\xff") + field(4, 3, struct.pack(">d", 0.5)) + field(6, 4, b"\0\2")
        + field(13, 5, struct.pack(">bbi", 11, 8, 1) + text(b"k") + struct.pack(">i", 9))
        + field(14, 6, struct.pack(">bi", 8, 2) + struct.pack(">ii", 1, 2)) + b"\0"
    )  # fmt: skip
    answer = service(message(field(STRUCT, 0, body) + b"\0")).call("lock")
    assert answer == {1: True, 2: -1, 3: 0.5, 4: 2, 5: [(b"k", 9)], 6: [1, 2]}


def test_exceptions_of_the_service_are_told_apart(service):
    declared = message(field(STRUCT, 2, field(STRING, 1, text(b"no such lock")) + b"\0") + b"\0")
    with pytest.raises(RefusedError, match="no such lock") as e:
        service(declared).call("lock")
    assert e.value.number == 2
    with pytest.raises(RefusedError, match="unknown method") as e:
        service(message(field(STRING, 1, text(b"unknown method")) + b"\0", kind=3)).call("lock")
    assert e.value.number == 0


def test_a_call_in_which_the_service_failed_may_have_had_its_effect(service):
    """Hive's answer where its database cannot lock for many at once."""
    failed = (
        field(STRING, 1, text(b"Internal error processing lock"))
        + field(I32, 2, struct.pack(">i", 6))
        + b"\0"
    )
    with pytest.raises(ThriftError, match="the service failed: Internal error processing lock"):
        service(message(failed, kind=3)).call("lock")


@pytest.mark.parametrize("cut", range(0, len(ANSWER), 5))
def test_an_answer_that_is_cut_is_none(service, cut):
    with pytest.raises(ThriftError, match="closed"):
        service(ANSWER[:cut]).call("lock")


@pytest.mark.parametrize(
    "junk",
    [
        b"HTTP/1.1 400 Bad Request\r\n\r\n",
        message(b"\0", name=b"unlock"),
        message(b"\0", number=2),
        message(b"\0", kind=1),
        struct.pack(">I", 0x80010002) + struct.pack(">i", -1),
        struct.pack(">I", 0x80010002) + struct.pack(">i", 2**31 - 1),
        message(field(LIST, 0, struct.pack(">bi", 3, 2**31 - 1))),
        message(field(LIST, 0, struct.pack(">bi", 3, -1))),
        message(field(99, 0, b"")),
        message((field(STRUCT, 0, b"") + b"") * 100),
    ],
)
def test_junk_is_none(service, junk):
    with pytest.raises(ThriftError, match="none of a Thrift service"):
        service(junk).call("lock")


def test_nobody_there_is_an_error():
    with pytest.raises(ThriftError):
        ThriftClient("127.0.0.1", 1, 5)
