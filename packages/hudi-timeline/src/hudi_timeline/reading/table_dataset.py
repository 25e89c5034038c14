"""The pyarrow dataset of a scan's base files, with what pyarrow's own lacks.

It keeps the scan, for which cleanings spare the files; a copy of it in another process has its filter; and DuckDB gets
its streams without a deadlock.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.fs as fs

from hudi_format.arrow.input import reader_of
from hudi_format.errors import UnsupportedError
from hudi_format.storage.calls import of_arrow

if TYPE_CHECKING:
    from hudi_timeline.reading.scan import Scan


class ScanFiles(fs.FileSystemHandler):  # type: ignore[misc]
    """File system of a table's storage, read-only; it keeps the scan as the dataset does."""

    def __init__(self, scan: Scan) -> None:
        self.scan = scan
        self.footers: dict[str, bytes] = {}
        of_arrow.callers.add(self)

    @property
    def file_system(self) -> fs.FileSystem:
        return fs.PyFileSystem(self)

    def get_type_name(self) -> str:
        return "hudi"

    def normalize_path(self, path: str) -> str:
        return path

    def open_input_file(self, path: str) -> pa.NativeFile:
        if path in self.footers:
            return pa.BufferReader(self.footers.pop(path))
        with of_arrow:
            return self.scan.storage.open_input(path)

    open_input_stream = open_input_file

    def get_file_info(self, paths: Sequence[str]) -> list[fs.FileInfo]:
        out = []
        for path in paths:
            found = self.scan.storage.info(path)
            kind = fs.FileType.NotFound if found is None else fs.FileType.File
            out.append(fs.FileInfo(path, kind, size=None if found is None else found.size))
        return out

    def _refuse(self, *_: object, **__: object) -> Any:
        raise UnsupportedError("the files of a table are written by the table alone", remedy="use HudiTable.")

    get_file_info_selector = create_dir = delete_dir = delete_dir_contents = delete_root_dir_contents = (
        _refuse
    )
    delete_file = move = copy_file = open_output_stream = open_append_stream = _refuse


class _Streams:
    """What DuckDB has of a scanner: a stream, which does not begin with Python's lock."""

    def __init__(self, scanner: ds.Scanner) -> None:
        self._scanner = scanner

    def to_reader(self) -> pa.RecordBatchReader:
        return reader_of(self._scanner)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._scanner, name)


class _ScannerOf:
    """The method `scanner`: pyarrow's own of a dataset, and of the class, by which DuckDB calls it, one for DuckDB.

    A scanner cannot be made of another class, and what writes a dataset takes no other.
    """

    def __get__(self, dataset: ds.Dataset | None, owner: type[ds.Dataset]) -> Callable[..., Any]:
        own = ds.FileSystemDataset.scanner
        if dataset is not None:
            bound: Callable[..., Any] = own.__get__(dataset, owner)
            return bound
        return lambda of, *given, **asked: _Streams(own(of, *given, **asked))


class FilesOfTable(ds.FileSystemDataset):  # type: ignore[misc]
    """Dataset of a scan's base files; a copy of it in another process is made of the scan.

    Fragments would be sent as paths alone, and read their footers anew.
    """

    scan: Scan
    filters: tuple[pc.Expression, ...] = ()  # besides the scan's
    scanner = _ScannerOf()

    def filter(self, expression: pc.Expression) -> ds.Dataset:
        made = super().filter(expression)
        made.scan, made.filters = self.scan, (*self.filters, expression)
        return made

    def of_scan(self, filter: pc.Expression | None) -> ds.Dataset:
        """The dataset of its rows that meet the scan's filter."""
        if filter is None:
            return self
        made = super().filter(filter)
        made.scan = self.scan
        return made

    def __reduce__(self) -> tuple[Callable[..., ds.Dataset], tuple[Scan, tuple[pc.Expression, ...]]]:
        return _made_of, (self.scan, self.filters)


def _made_of(scan: Scan, filters: tuple[pc.Expression, ...]) -> ds.Dataset:
    made = scan.to_pyarrow_dataset()
    for one in filters:
        made = made.filter(one)
    return made
