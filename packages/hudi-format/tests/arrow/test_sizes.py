"""Sizes of Arrow data."""

import ast
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from hudi_format.arrow.sizes import size_of

PACKAGES = Path(__file__).parent.parents[2]
INNER = pa.map_(pa.string(), pa.int32())
# Memory views and NumPy's, and the sizes of bloom filters.
NO_ARROW = {"hfile/source.py": {"_data"}, "storage/streams.py": {"view"}, "bloom/filter.py": {"shape"},
            "bloom/probe.py": {"shape"}}  # fmt: skip


def no_values(kind=INNER):
    """An array of no values and no offset, as Spark sends it: Arrow may not look at its buffer."""
    entries = pa.struct([kind.key_field, kind.item_field])
    return pa.Array.from_buffers(
        kind, 0, [None, pa.foreign_buffer(4096, 0)], children=[pa.array([], entries)]
    )


def empty_lists(rows=3):
    offsets = pa.py_buffer(bytes(4 * rows + 4))
    return pa.Array.from_buffers(pa.list_(INNER), rows, [None, offsets], children=[no_values()])


@pytest.mark.parametrize(
    "array",
    [
        pa.array([1, None, 3], pa.int32()),
        pa.array([True, False] * 20),
        pa.array(["a", None, "ccc"]),
        pa.array(["a", None, "ccc"], pa.large_string()),
        pa.array([b"abc", b"abd"], pa.binary(3)),
        pa.array([[1, 2], None, []], pa.list_(pa.int64())),
        pa.array([[1, 2], None, []], pa.large_list(pa.int64())),
        pa.array([[1, 2], [3, 4], None], pa.list_(pa.int64(), 2)),
        pa.array([[("k", 1)], [], None, [("a", 2), ("b", None)]], INNER),
        pa.array([{"a": 1, "b": ["x"]}, {"a": None, "b": None}]),
        pa.array(["a", "b", "a"]).dictionary_encode(),
        pa.nulls(7),
    ],
    ids=lambda a: str(a.type),
)
def test_sizes_are_arrows_where_arrow_can_be_asked(array):
    for shown in (array, array.slice(1), array.slice(1, 1), pa.concat_arrays([array] * 3).slice(2, 4)):
        # Arrow counts the bytes that bits of validity touch, wherever they begin.
        assert size_of(shown) == pytest.approx(shown.nbytes, abs=4)
    assert size_of(pa.table({"a": array})) == size_of(pa.record_batch({"a": array})) == size_of(array)


def test_sizes_of_what_arrow_does_not_know_or_may_not_look_at():
    assert size_of(empty_lists()) == 12
    assert size_of(no_values()) == 0
    long = pa.array(["x" * 100, "y" * 50, "short"], pa.string_view())
    assert size_of(long) == 3 * 16 + 150
    assert size_of(long.slice(1)) == 2 * 16 + 50  # halves of a column get smaller
    assert size_of(pa.array([[1], [2, 3]], pa.list_view(pa.int64()))) == 2 * 8 + 3 * 8
    runs = pa.RunEndEncodedArray.from_arrays(pa.array([2, 5], pa.int32()), pa.array([1, 2], pa.int64()))
    assert size_of(runs) == 2 * 4 + 2 * 8
    assert size_of(runs.slice(3)) == 4 + 8
    union = pa.UnionArray.from_sparse(pa.array([0, 1], pa.int8()), [pa.array([1, 2]), pa.array(["a", "b"])])
    assert size_of(union) == 2 + 16 + 10
    assert size_of(pa.ExtensionArray.from_storage(pa.uuid(), pa.array([b"0" * 16], pa.binary(16)))) == 16


def test_arrow_itself_still_dies():
    """Why `size_of` is there: remove it, and the door's mending of empty arrays, once this fails."""
    code = f"import sys; sys.path[:0] = [{str(Path(__file__).parent)!r}]\n" + (
        "from test_sizes import empty_lists; print(empty_lists().nbytes)"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=60, check=False)
    assert ended.returncode < 0, ended


def test_nothing_of_ours_asks_arrow_for_sizes():
    found = []
    for path in sorted(PACKAGES.glob("hudi-*/src/**/*.py")):
        allowed = next((names for end, names in NO_ARROW.items() if path.as_posix().endswith(end)), set())
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Attribute) and node.attr in {"nbytes", "get_total_buffer_size"}:
                owner = node.value
                name = owner.attr if isinstance(owner, ast.Attribute) else getattr(owner, "id", "")
                if name not in allowed:
                    found.append(f"{path.relative_to(PACKAGES)}:{node.lineno}")
    assert not found, f"hudi_format.arrow.sizes.size_of does not end the process: {found}"
