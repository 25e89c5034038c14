"""Bloom filters as footers and HFiles have them."""

from __future__ import annotations

import base64
from collections.abc import Iterator

import pyarrow as pa

from hudi_format.errors import CorruptFileError
from hudi_index.bloom.filter import DYNAMIC, SIMPLE, BloomFilter, parse_filter
from hudi_index.bloom.probe import Probe, filter_text
from targets.target import Target

KEYS = pa.array([f"key-{i}" for i in range(40)])


def run_bytes(data: bytes) -> None:
    """The first byte is the type; both readers of a filter must give the same answers."""
    if not data:
        return
    code = (SIMPLE, DYNAMIC, None, "OTHER")[data[0] % 4]
    text = base64.b64encode(data[1:])
    try:
        found = parse_filter(text.decode(), code)
    except CorruptFileError:
        found = None
    try:
        quick = filter_text(memoryview(text), code)
    except CorruptFileError:
        # Bytes after the last row: only who decodes it all can tell them from padding.
        assert found is None
        return
    hits = Probe(KEYS).might_be_in(quick).tolist()
    if found is not None:
        want = [i for i, hit in enumerate(found.might_contain(KEYS).tolist()) if hit]
        assert hits == want, (hits, want)


def run_text(data: bytes) -> None:
    """What stands in the footer need not be base64."""
    text = data[1:].decode("latin-1")
    code = (SIMPLE, DYNAMIC)[data[0] % 2] if data else SIMPLE
    parse_filter(text, code)
    Probe(KEYS).might_be_in(filter_text(memoryview(data[1:]), code))


def _seeds() -> Iterator[bytes]:
    for code, byte in ((SIMPLE, 0), (DYNAMIC, 1)):
        for entries in (1, 20):
            made = BloomFilter.create(code, entries, 0.01, 3 * entries)
            made.add(KEYS.slice(0, 30))
            yield bytes([byte]) + made.to_bytes()


def _text_seeds() -> Iterator[bytes]:
    yield from (s[:1] + base64.b64encode(s[1:]) for s in _seeds())


TARGETS = (
    Target("bloom", run_bytes, _seeds, most=4096),
    Target("bloom_text", run_text, _text_seeds, most=4096),
)
