"""What a new process imports: no more than opening a table and planning a read needs."""

import subprocess
import sys

import pyarrow as pa
import pytest

import hudi_timeline
from hudi_timeline import HudiTable

# Each took longer than the plan itself, or brings what does.
HEAVY = (
    "asyncio",
    "fastavro",
    "fsspec",
    "hudi_timeline.options.write_config",
    "hudi_format.file_slice.reader",
    "hudi_index",
    "hudi_timeline.reading.incremental.incremental_range",
    "hudi_timeline.reading.task",
    "hudi_timeline.services.cleaning",
    "hudi_timeline.verify.verify",
    "hudi_timeline.writing.operation",
    "numpy.testing",
    "pandas",
    "pyarrow.acero",
    "pyarrow.dataset",
    "pyarrow.fs",
    "pyarrow.orc",
    "pyarrow.parquet",
    "rich",
    "hudi_format.avro.decoder",
)
FILTERS = (
    "p = 'b'",
    "p <> 'a' and id >= 2 and price < 1.6 and day > '2025-12-31'",
    "p in ('b', 'c')",
    "p > 'a' and p <> 'c'",
)


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cold") / "t"
    rows = pa.table({"id": [1, 2], "p": ["a", "b"], "price": [0.5, 1.5], "day": ["2026-01-01"] * 2})
    rows = rows.set_column(3, "day", rows["day"].cast(pa.date32()))
    made = HudiTable.create(str(folder), rows.schema, name="t", record_keys=["id"], partition_fields=["p"])
    made.insert(rows)
    made.upsert(rows)
    return str(folder)


def imported(code):
    """Which of `HEAVY` a new process has imported after running `code`, with what its last line printed."""
    code += f"\nimport sys; print(sorted(m for m in {HEAVY!r} if m in sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    return done.stdout.splitlines()[-1]


@pytest.mark.parametrize("filter", FILTERS)
@pytest.mark.sampled(3)
def test_opening_and_planning_imports_nothing_heavy(table, filter):
    read = f"HudiTable.open({table!r}).read(filter={filter!r}).plan.files.column('partition').to_pylist()"
    assert imported(f"from hudi_timeline import HudiTable\nassert {read} == ['b']") == "[]"


QUESTIONS = (
    "t.count()", "t.head()", "t.read().to_arrow()", "list(t.read(columns=['p']).to_batches())", "t.history()",
    "t.inspect.commits()", "t.inspect.timeline()", "t.inspect.files()", "t.inspect.file_slices()",
    "t.inspect.partitions()", "t.inspect.stats()",
)  # fmt: skip
COMMANDS = ("count", "head", "show", "history", "files", "schema")
# The first of some calls after which pandas is there.
FIRST = """
import sys
for name, call in calls.items():
    call()
    assert "pandas" not in sys.modules, name
"""


def test_rows_and_what_is_known_of_a_table_need_no_pandas(table):
    calls = ", ".join(f"{q!r}: lambda: {q}" for q in QUESTIONS)
    made = f"from hudi_timeline import HudiTable\nt = HudiTable.open({table!r})\ncalls = {{{calls}}}{FIRST}"
    assert "pandas" not in imported(made)


def test_commands_for_a_look_need_no_pandas(table):
    made = f"""
import sys
from hudi_timeline.cli.main import main

def run(name):
    sys.argv = ["hudi", name, {table!r}]
    try:
        main()
    except SystemExit as e:
        assert not e.code, (name, e)

calls = {{n: lambda n=n: run(n) for n in {COMMANDS!r}}}{FIRST}"""
    assert "pandas" not in imported(made)


def test_what_is_asked_for_is_imported_then(table):
    """The check above can fail."""
    code = (
        f"from hudi_timeline import HudiTable\nt = HudiTable.open({table!r})\nt.read().to_arrow()\nt.verify()"
    )
    found = imported(code)
    assert "pyarrow.parquet" in found
    assert "hudi_timeline.verify.verify" in found


def test_public_names_are_there_at_first_use():
    code = "import hudi_timeline\nfor n in hudi_timeline.__all__: assert getattr(hudi_timeline, n), n"
    imported(code)
    assert set(hudi_timeline.__all__) <= set(dir(hudi_timeline))
    with pytest.raises(AttributeError, match="NoSuchName"):
        hudi_timeline.NoSuchName  # noqa: B018
