"""HTML views: each object of the public interface has one, and none lets a table's text become markup."""

import re
from dataclasses import dataclass
from html.parser import HTMLParser

import pyarrow as pa
import pytest

from hudi_timeline import HudiTable
from hudi_timeline.display import html_view

SCRIPT = "<script>x</script>"


class Balanced(HTMLParser):
    """Whether every tag is closed in order."""

    def __init__(self):
        super().__init__()
        self.open = []

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def view_of(thing):
    html = thing._repr_html_()
    parser = Balanced()
    parser.feed(html)
    assert parser.open == []
    assert "<script" not in html
    return re.sub(r"<[^>]*>", " ", html)


@pytest.fixture
def table(tmp_path):
    rows = [{"id": "a", "city": SCRIPT, "n": 1}, {"id": "b", "city": "oslo", "n": 2}]
    made = HudiTable.create(
        str(tmp_path / "t"), rows, name="trips", record_keys="id", table_type="MERGE_ON_READ",
        options={"hoodie.datasource.write.precombine.field": "n"},
    )  # fmt: skip
    made.insert(rows)
    made.upsert([{"id": "a", "city": SCRIPT, "n": 3}])
    return made


def test_each_object_says_what_it_is(table):
    scan = table.read(columns=["id"], filter="n > 0")
    assert "trips" in view_of(table)
    assert "UPSERT" in view_of(table), "its newest writes"
    assert "as of" in view_of(scan)
    scan.to_arrow()
    assert "files" in view_of(scan), "once it is planned"
    assert "reads" in view_of(scan.explain())
    assert "deltacommit" in view_of(table.timeline)
    assert "MERGE_ON_READ" in view_of(table.config)
    assert "sound" in view_of(table.verify())


def test_a_view_of_a_scan_reads_nothing(table, monkeypatch):
    scan = table.read()
    monkeypatch.setattr(type(scan._source), "plan", lambda self: pytest.fail("planned"))
    view_of(scan)


def test_results_of_services(table):
    assert "CompactionResult" in view_of(table.compact())
    assert "dry" not in view_of(table.clean(dry_run=True))
    assert "RollbackResult" in view_of(table.rollback())
    assert "ArchiveResult" in view_of(table.archive(dry_run=True))
    assert "LockReport" in view_of(table.lock_report())
    assert "CompactionStatus" in view_of(table.compaction_status())
    assert "KeyHistory" in view_of(table.key_history(["a"]))
    assert "DedupeResult" in view_of(table.deduplicate(dry_run=True))


def test_findings_are_shown_with_their_codes(table):
    base = next(r["path"] for r in table.inspect.files().to_pylist() if r["kind"] == "base")
    table.storage.delete(base)
    found = table.verify()
    assert isinstance(found, list)
    assert found[0].code in view_of(found)
    assert found[0].code in view_of(found[0])


def test_markup_in_data_is_text():
    rows = pa.table({SCRIPT: [SCRIPT] * (html_view.MOST_ROWS + 5)})
    html = html_view.titled(SCRIPT, html_view.rows_view(rows), html_view.facts_view([(SCRIPT, SCRIPT)]))
    assert "<script" not in html
    assert "and 5 more" in html


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, ""), ((), ""), (False, "no"), (True, "yes"), (12345, "12,345"), (1.5, "1.50"), (0, "0"),
        ({"a": 1}, "a: 1"), (["x"] * 12, "x, " * 9 + "x and 2 more"), ("y" * 400, "y" * 300 + " …"),
    ],
)  # fmt: skip
def test_values_in_few_words(value, text):
    assert html_view.text_of(value) == text


def test_short_texts_of_what_is_large(table):
    for thing in (table.timeline, table.config, table.inspect):
        assert "\n" not in repr(thing)
        assert len(repr(thing)) < 600
    assert "2 instants" in repr(table.timeline)
    assert "commits()" in repr(table.inspect)


def test_a_value_inside_of_a_view_is_told_by_what_it_is_made_of():
    @dataclass(frozen=True)
    class Part:
        path: str
        size: int = 0

    @dataclass(frozen=True)
    class Plan:
        what: Part
        parts: tuple[Part, ...] = ()
        note: str = ""

    assert (
        html_view.text_of((Plan(Part("p", 12345), (Part("q"),) * 2000),))
        == "what: path: p; size: 12,345; parts: 2,000"
    )


def test_times_that_python_does_not_have_are_shown():
    view = html_view.rows_view(pa.table({"t": pa.array([2**62, None], pa.timestamp("us", "UTC"))}))
    assert "17036-07-06" in view
