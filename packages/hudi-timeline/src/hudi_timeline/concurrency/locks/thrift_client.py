"""Client of a Thrift service: calls by name with structs of numbered fields.

Its binary protocol, unframed, as much of it as the locks of a Hive metastore need, without generated code: fields are
given and got by number.

Source: the Thrift binary protocol encoding, as specified by Apache Thrift 0.12.
"""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Iterable
from typing import Any, Final, NoReturn, TypeAlias

BOOL, BYTE, DOUBLE, I16, I32, I64, STRING, STRUCT, MAP, SET, LIST = 2, 3, 4, 6, 8, 10, 11, 12, 13, 14, 15
_CALL, _REPLY, _EXCEPTION = 1, 2, 3
_INTERNAL_ERROR = 6  # type of an exception that no method declares
_VERSION: Final = 0x80010000
_FIXED = {BOOL: ">?", BYTE: ">b", DOUBLE: ">d", I16: ">h", I32: ">i", I64: ">q"}
_MOST_BYTES = 16 << 20  # of one answer
_MOST_DEPTH = 32

Field: TypeAlias = tuple[int, int, Any]
"""Number, type and value of a field: of a struct its fields, of a list the type of its elements and they."""
Struct: TypeAlias = list[Field]
Answer: TypeAlias = dict[int, Any]
"""Values of a struct by number; texts are bytes."""


class ThriftError(Exception):
    """The connection failed, no answer came, or the service failed in the call."""


class RefusedError(Exception):
    """The service answered with an exception of its own.

    Attributes:
        number: which of those that the method declares; 0 for one that it does not.
        fields: of the exception.
    """

    def __init__(self, number: int, fields: Answer) -> None:
        text = next((v for v in fields.values() if isinstance(v, bytes)), b"")
        super().__init__(text.decode("utf-8", "replace"))
        self.number, self.fields = number, fields


def _encoded(fields: Iterable[Field]) -> bytes:
    parts = []
    for number, kind, value in fields:
        parts.append(struct.pack(">bh", kind, number))
        parts.append(_value(kind, value))
    return b"".join(parts) + b"\0"


def _value(kind: int, value: Any) -> bytes:
    if kind in _FIXED:
        return struct.pack(_FIXED[kind], value)
    if kind == STRING:
        data: bytes = value.encode()
        return struct.pack(">i", len(data)) + data
    if kind == STRUCT:
        return _encoded(value)
    if kind == LIST:
        of, elements = value
        return struct.pack(">bi", of, len(elements)) + b"".join(_value(of, e) for e in elements)
    raise ValueError(f"type {kind} is not written here")


class ThriftClient:
    """A connection to a service; not for several threads at a time.

    Args:
        timeout_s: for a connection, and for each whole answer.

    Raises:
        ThriftError: nothing takes the connection.
    """

    def __init__(self, host: str, port: int, timeout_s: float) -> None:
        try:
            self._socket = socket.create_connection((host, port), timeout_s)
        except OSError as e:
            raise ThriftError(str(e)) from None
        self._timeout_s = timeout_s
        self._until = 0.0
        self._left = 0
        self._number = 0

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()

    def call(self, method: str, *arguments: Field) -> Any:
        """Result of a method; None of one that gives nothing.

        Raises:
            RefusedError: the service raised.
            ThriftError: no answer came, or that the service failed: the call may have had its effect or not.
        """
        self._number += 1
        name = method.encode()
        head = struct.pack(">Ii", _VERSION | _CALL, len(name)) + name + struct.pack(">i", self._number)
        try:
            self._until = time.monotonic() + self._timeout_s
            self._socket.settimeout(self._timeout_s)
            self._socket.sendall(head + _encoded(arguments))
            return self._answer(method)
        except OSError as e:
            raise ThriftError(str(e) or type(e).__name__) from None

    def _answer(self, method: str) -> Any:
        self._left = _MOST_BYTES
        (version,) = self._unpacked(">I")
        if version & 0xFFFF0000 != _VERSION:
            self._junk("it begins with no version of the binary protocol")
        name, number = self._bytes(), self._unpacked(">i")[0]
        fields = self._struct(0)
        if version & 0xFF == _EXCEPTION:
            refused = RefusedError(0, fields)
            # A metastore's database fails now and then where several ask for locks.
            if fields.get(2) == _INTERNAL_ERROR:
                raise ThriftError(f"the service failed: {refused}")
            raise refused
        if version & 0xFF != _REPLY or name != method.encode() or number != self._number:
            self._junk("it answers another call")
        raised = next((n for n in fields if n), 0)
        if raised:
            raise RefusedError(raised, fields[raised] if isinstance(fields[raised], dict) else {})
        return fields.get(0)

    def _junk(self, why: str) -> NoReturn:
        raise ThriftError(f"the answer is none of a Thrift service: {why}")

    def _read(self, size: int) -> bytes:
        if not 0 <= size <= self._left:
            self._junk("a length is impossible")
        self._left -= size
        parts = []
        while size:
            left_s = self._until - time.monotonic()
            if left_s <= 0:  # however often a few bytes came
                raise ThriftError(f"no whole answer came within {self._timeout_s:g} s")
            self._socket.settimeout(left_s)
            part = self._socket.recv(min(size, 1 << 16))
            if not part:
                raise ThriftError("the connection was closed")
            parts.append(part)
            size -= len(part)
        return b"".join(parts)

    def _unpacked(self, form: str) -> tuple[Any, ...]:
        return struct.unpack(form, self._read(struct.calcsize(form)))

    def _bytes(self) -> bytes:
        return self._read(self._unpacked(">i")[0])

    def _struct(self, depth: int) -> Answer:
        found: Answer = {}
        while kind := self._unpacked(">b")[0]:
            (number,) = self._unpacked(">h")
            found[number] = self._decoded(kind, depth + 1)
        return found

    def _decoded(self, kind: int, depth: int) -> Any:
        if depth > _MOST_DEPTH:
            self._junk("it is nested too deeply")
        if kind in _FIXED:
            return self._unpacked(_FIXED[kind])[0]
        if kind == STRING:
            return self._bytes()
        if kind == STRUCT:
            return self._struct(depth)
        if kind in (LIST, SET):
            of, count = self._unpacked(">bi")
            self._check_count(count)
            return [self._decoded(of, depth + 1) for _ in range(count)]
        if kind == MAP:
            key, value, count = self._unpacked(">bbi")
            self._check_count(count)
            return [(self._decoded(key, depth + 1), self._decoded(value, depth + 1)) for _ in range(count)]
        return self._junk(f"a field has the type {kind}")

    def _check_count(self, count: int) -> None:
        # Each element takes a byte at least: a count beyond what may come allocates nothing.
        if not 0 <= count <= self._left:
            self._junk("a count is impossible")
