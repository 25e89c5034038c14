"""The harness itself: what Apache Hudi writes, all readers give back, and the comparison sees what differs."""

import zipfile

import pyarrow as pa
import pytest

from interop import bundles, spark_process
from interop.apache_hudi import OursOnSpark
from interop.rows import assert_same_rows, without_meta
from interop.samples import SHAPES, Model, Rows
from interop.spark_process import SparkProcessError


@pytest.fixture(scope="module")
def apache_table(pool, tmp_path_factory):
    shape = SHAPES["all_types"]
    rows, model = Rows(shape), Model(shape)
    path = tmp_path_factory.mktemp("apache") / "t"
    first = rows.new(20)
    second = rows.changed(first, 8) + rows.new(4)
    for operation, given in (("insert", first), ("upsert", second)):
        model.apply(operation, given)
        pool.get("0.15.0").write(
            path,
            pa.Table.from_pylist(given, schema=shape.schema),
            shape.write_options() | {"hoodie.datasource.write.operation": operation},
        )
    return path, model


def test_readers_give_back_what_apache_hudi_wrote(apache_table, reader):
    path, model = apache_table
    assert_same_rows(without_meta(reader.read(path)), model.table(), ["uuid"], ordered_columns=False)


def test_the_timeline_is_seen_by_apache_hudi(apache_table, apache):
    timeline = apache.timeline(apache_table[0])
    assert [i[1:] for i in timeline] == [("commit", "COMPLETED")] * 2


def test_an_error_of_apache_hudi_arrives_and_the_process_lives_on(apache, tmp_path):
    with pytest.raises(SparkProcessError, match="nothing does not exist"):
        apache.read(tmp_path / "nothing")
    assert apache.sql("select 1 as a").to_pylist() == [{"a": 1}]


@pytest.mark.in_ci
def test_a_relative_path_is_one_of_the_caller(apache, apache_table, monkeypatch):
    path = apache_table[0]
    monkeypatch.chdir(path.parent)
    assert apache.read(path.name).equals(apache.read(path.as_uri()))
    assert apache.timeline(path.name) == apache.timeline(path)


@pytest.mark.slow
def test_one_that_gives_no_answer_is_ended_and_says_so(monkeypatch):
    with OursOnSpark() as running:
        monkeypatch.setattr(spark_process, "LONGEST_S", 2)
        with pytest.raises(SparkProcessError) as e:
            running.sql("select java_method('java.lang.Thread', 'sleep', 3600000L)")
        assert e.value.__notes__ == ["it gave no answer to sql in 2 s, and was ended"]
        assert not running.running


def test_half_a_jar_in_the_cache_is_fetched_again(tmp_path, monkeypatch):
    artifact = bundles.Artifact("org.example", "thing", "1.0")
    repository = tmp_path / ".m2/repository/org/example/thing/1.0"
    repository.mkdir(parents=True)
    with zipfile.ZipFile(repository / artifact.file_name, "w") as made:
        made.writestr("A.class", bytes(1000))
    whole = (repository / artifact.file_name).read_bytes()
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    kept = bundles.cache_folder() / artifact.file_name
    kept.parent.mkdir(parents=True)
    kept.write_bytes(whole[: len(whole) // 2])
    assert bundles.jar(artifact).read_bytes() == whole
    kept.unlink()
    monkeypatch.setattr(bundles, "_maven", bundles._local)
    monkeypatch.setattr(bundles, "_ivy", bundles._local)
    (repository / artifact.file_name).write_bytes(whole[: len(whole) // 2])
    with pytest.raises(bundles.BundleError, match="gave a part of the jar"):
        bundles.jar(artifact)
    assert [p.name for p in kept.parent.iterdir()] == [".lock"]


def _table(**columns):
    return pa.table({"k": ["a", "b"], **columns})


@pytest.mark.parametrize(
    ("got", "want", "message"),
    [
        (_table(x=[1, 2]), _table(x=[1, 3]), "x: 2 != 3"),
        (_table(x=[1, 2]), _table(x=pa.array([1, 2], pa.int32())), "columns differ"),
        (_table(x=[0.0, 1.0]), _table(x=[-0.0, 1.0]), "x:"),
        (_table(x=[1, 2]), _table(x=[1, 2]).slice(0, 1), "only got"),
        (pa.concat_tables([_table(x=[1, 2])] * 2), _table(x=[1, 2]), "number of copies|only got"),
        (_table(x=[[1, None], None]), _table(x=[[1], None]), "x:"),
    ],
)
def test_the_comparison_sees_what_differs(got, want, message):
    with pytest.raises(AssertionError, match=message):
        assert_same_rows(got, want, ["k"])


def test_the_comparison_ignores_order_and_names_of_list_items():
    nan = float("nan")
    a = pa.table({"k": ["a", "b"], "x": [[1], [2, 3]], "m": [{"p": 1.0}, {"p": nan}]})
    other = pa.list_(pa.field("array", pa.int64(), nullable=False))
    b = a.take([1, 0]).cast(a.schema.set(1, pa.field("x", other, nullable=False)))
    assert_same_rows(b, a, ["k"])
