"""Masks of values in a capsule: rank within the value's kind, and a keyed hash.

Equal values have equal masks and greater ones greater masks, so that key ranges and statistics drop the same files;
without the key, which is never stored, nothing else can be told from them.
"""

from __future__ import annotations

import bisect
import hashlib
import hmac
import re
from collections.abc import Iterable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa

from hudi_format.file_names import PARTITION_METADATA, parse_data_file
from hudi_timeline.timeline.instant import ACTIONS

_DEFAULT_PARTITIONS = ("__HIVE_DEFAULT_PARTITION__", "default")
_INSTANT = re.compile(r"[0-9]{14,17}\Z")
_WORD = re.compile(r"[A-Z][A-Z0-9_]*\Z")
_CLASS = re.compile(r"(org|com|io)\.[A-Za-z0-9_.$]+\Z")
_ISO_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}\Z")
_FILE_ID = re.compile(
    r"[0-9a-zA-Z]*[0-9a-f]{4,}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}(-[0-9]+)?\Z"
)
_MARKER = re.compile(r"(?P<file>.+)\.marker\.(CREATE|MERGE|APPEND)\Z")
_EXTENSIONS = frozenset(
    {"avro", "crc", "csv", "hfile", "json", "log", "orc", "parquet", "properties", "tmp", "txt"}
)
_EPOCH = date(1970, 1, 1)
BASE = "capsule:/table"
"""What stands for the table's base path."""


def _place(value: Any) -> tuple[str, Any]:
    """Sort key of a value, which also orders values of different types."""
    if isinstance(value, (int, float, Decimal)):
        return "number", value
    if isinstance(value, datetime):
        return "moment" if value.tzinfo is None else "instant", value
    return type(value).__name__, value


class Mask:
    """Masks of one table's values.

    All values of a kind are given before the first mask of it is asked for.
    """

    def __init__(self, key: bytes, uri: str, *, hashed: bool = True) -> None:
        """Masks for the values of one table.

        Args:
            key: of the hash; 16 bytes or more.
            uri: the table's base path, which is masked too.
            hashed: whether masks carry a hash beside the rank.
        """
        self._key, self._uri, self._hashed = key, uri.rstrip("/"), hashed
        self._values: dict[str, set[Any]] = {}
        self._sorted: dict[str, list[Any]] = {}
        self.partitions: dict[str, str] = {}
        self.instants: set[str] = set()

    # --- values --------------------------------------------------------------------------------------

    def meet(self, kind: str, values: Iterable[Any]) -> None:
        """Record values of a kind: record keys, or those of a column."""
        self._values.setdefault(kind, set()).update(v for v in values if v is not None)

    def rank(self, kind: str, value: Any) -> int:
        """Rank of a value in its kind, from 0."""
        if kind not in self._sorted:
            self._sorted[kind] = sorted(self._values.get(kind, ()), key=_place)
        return bisect.bisect_left(self._sorted[kind], _place(value), key=_place)

    def text(self, kind: str, value: str) -> str:
        """Mask of a text."""
        width = len(str(len(self._values.get(kind, ()))))
        rank = f"{self.rank(kind, value):0{width}d}"
        return f"{rank}-{self.digest(kind, value)}" if self._hashed else rank

    def digest(self, kind: str, value: str) -> str:
        """A keyed hash, 12 hex digits."""
        # Half a character, which JSON can name, is taken as it is.
        text = f"{kind}\0{value}".encode("utf-8", "surrogatepass")
        return hmac.new(self._key, text, hashlib.sha256).hexdigest()[:12]

    def value(self, kind: str, value: Any, type_: pa.DataType) -> Any:
        """Mask of a column value, in the column's type."""
        if pa.types.is_string(type_) or pa.types.is_large_string(type_):
            return self.text(kind, value)
        if pa.types.is_binary(type_) or pa.types.is_large_binary(type_):
            return self.text(kind, value).encode()
        rank = self.rank(kind, value)
        if pa.types.is_integer(type_):
            return min(rank, 2 ** (type_.bit_width - 1) - 1)
        if pa.types.is_floating(type_):
            return float(rank)
        if pa.types.is_date(type_):
            return _EPOCH + timedelta(days=rank)
        if pa.types.is_timestamp(type_):
            moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=rank)
            return moment if type_.tz else moment.replace(tzinfo=None)
        return None

    # --- paths ---------------------------------------------------------------------------------------

    def meet_partition(self, path: str) -> None:
        """Record a partition."""
        for segment in path.split("/"):
            self.meet("partition", [segment.partition("=")[2] if "=" in segment else segment])
        self.partitions[path] = ""

    def partition(self, path: str) -> str:
        """Mask of a partition path; column names stay."""
        if path and not self.partitions.get(path):
            self.partitions[path] = "/".join(map(self._segment, path.split("/")))
        return self.partitions[path] if path else ""

    def _segment(self, segment: str) -> str:
        name, equals, value = segment.partition("=")
        if not equals:
            name, value = "", segment
        return f"{name}{equals}{self.partition_value(value)}"

    def partition_value(self, value: str) -> str:
        """Mask of a partition value; digits stay digits and days stay days."""
        if value in _DEFAULT_PARTITIONS or not value:
            return value
        rank = self.rank("partition", value)
        if value.isascii() and value.isdigit():
            return str(rank + 1).zfill(len(value))
        if _ISO_DATE.match(value):
            return (_EPOCH + timedelta(days=rank)).isoformat()
        return self.text("partition", value)

    def path(self, path: str) -> str:
        """Mask of a path below the table, or of an absolute path."""
        if f"{path}/".startswith(f"{self._uri}/"):
            rest = path[len(self._uri) :].lstrip("/")
            return f"{BASE}/{self.path(rest)}" if rest else BASE
        if path in self.partitions:
            return self.partition(path)
        folder, slash, name = path.rpartition("/")
        masked = (
            self.partition(folder)
            if folder in self.partitions
            else "/".join(map(self.name, folder.split("/")))
        )
        return f"{masked if folder else ''}{slash}{self.name(name)}"

    def name(self, name: str) -> str:
        """Mask of a file name; Hudi's own parts stay."""
        marker = _MARKER.match(name)
        plain = marker["file"] if marker else name
        crc = plain.startswith(".") and plain.endswith(".crc")
        own = plain[1:-4] if crc else plain
        known = parse_data_file("", own) is not None or own.startswith(
            (".hoodie", "hoodie.properties", PARTITION_METADATA, "MARKERS")
        )
        if known or not name:
            return name
        extension = name.rpartition(".")[2]
        return f"x{self.digest('name', name)}" + (f".{extension}" if extension in _EXTENSIONS else "")

    # --- what metadata says --------------------------------------------------------------------------

    def word(self, text: str) -> str:
        """Mask of a timeline text; instants, actions, classes and file names stay."""
        if not text or text in self.instants:
            return text
        if text in self.partitions:
            return self.partition(text)
        if self._is_safe(text):
            return text
        if "/" in text:
            return self.path(text)
        if all(_INSTANT.match(t) for t in text.split(",")):
            return text
        masked = self.name(text)
        return text if masked == text else self.digest("text", text)

    def free(self, text: str) -> str:
        """Mask of free text; only instants and yes/no values stay."""
        if not text or text in ("true", "false") or all(_INSTANT.match(t) for t in text.split(",")):
            return text
        return self.digest("text", text)

    def _is_safe(self, text: str) -> bool:
        return bool(
            text in ACTIONS
            or text == "null"
            or text in ("true", "false")
            or _INSTANT.match(text)
            or _WORD.match(text)
            or _CLASS.match(text)
            or _FILE_ID.match(text)
        )
