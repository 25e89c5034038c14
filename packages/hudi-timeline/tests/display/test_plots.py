"""Plots: what they draw, told from the axes.  Matplotlib is no dependency: a stand-in records what it is told."""

import sys

import pytest

from hudi_timeline import HudiTable


class Axes:
    """Records calls, as Matplotlib's axes take them."""

    def __init__(self):
        self.calls = []
        self.figure = self

    def __getattr__(self, name):
        return lambda *a, **k: self.calls.append((name, a, k))

    def of(self, name):
        return [(a, k) for n, a, k in self.calls if n == name]


@pytest.fixture
def table(tmp_path):
    rows = [{"id": k, "p": k[0], "n": 1} for k in ("a1", "a2", "b1")]
    made = HudiTable.create(
        str(tmp_path / "t"), rows, record_keys="id", partition_fields="p", table_type="MERGE_ON_READ",
        ordering_fields="n",
    )  # fmt: skip
    made.insert(rows)
    made.upsert([{"id": "a1", "p": "a", "n": 2}])
    return made


def test_the_timeline_has_a_point_for_each_instant(table):
    ax = table.plot.timeline(Axes())
    ((times, heights), said) = ax.of("scatter")[0]
    assert said["label"] == "completed"
    assert len(times) == 2
    assert heights == [0, 0]
    assert ax.of("set_yticks")[0][0][1] == ["deltacommit"]


def test_file_sizes_are_counted(table):
    ax = table.plot.file_sizes(Axes())
    assert [k["label"] for _, k in ax.of("hist")] == ["2 base files", "1 log files"]


def test_the_log_backlog_has_a_bar_for_each_partition(table):
    ax = table.plot.log_backlog(Axes())
    (names, base), _ = ax.of("barh")[0]
    (_, logs), said = ax.of("barh")[1]
    assert names == ["a", "b"]
    assert logs[0] > 0 == logs[1]
    assert said["left"] == base


def test_key_ranges_have_a_line_for_each_file(table):
    ax = table.plot.key_ranges(Axes())
    assert [a[0] for a, _ in ax.of("plot")] == [[0, 1], [2, 2]]
    assert ax.of("set_xticks")[0][0][1] == ["a1", "a2", "b1"]


def test_keys_and_partitions_are_no_formulas(tmp_path):
    """Matplotlib fails on `$a_{$`."""
    made = HudiTable.create(
        str(tmp_path / "$t$"), [{"id": "$a_{$", "p": "$p^$"}], record_keys="id", partition_fields="p"
    )
    made.insert([{"id": "$a_{$", "p": "$p^$"}])
    assert made.plot.key_ranges(Axes()).of("set_xticks")[0][0][1] == [r"\$a_{\$"]
    ax = made.plot.log_backlog(Axes())
    assert ax.of("barh")[0][0][0] == [r"\$p^\$"]
    assert "$" not in ax.of("set_title")[0][0][0].replace(r"\$", "")


def test_an_empty_table(tmp_path):
    made = HudiTable.create(str(tmp_path / "e"), [{"id": "a"}], record_keys="id")
    for name in ("timeline", "file_sizes", "log_backlog", "key_ranges"):
        getattr(made.plot, name)(Axes())


def test_without_matplotlib_the_error_says_what_to_install(table, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match="pip install matplotlib"):
        table.plot.timeline()
