"""Names that the JVM is asked for once: what is kept, and what is asked again."""

import pytest
from py4j.java_gateway import GatewayClient, JavaClass
from py4j.protocol import Py4JError
from pyspark.sql import functions as F

from hudi_spark.runtime import java_names
from hudi_spark.runtime.java_names import keep_names


@pytest.fixture
def asked(session, monkeypatch):
    """Names that the JVM is asked for."""
    keep_names(session)
    out = []
    client = type(session._jvm._gateway_client)
    original = client.send_command

    def send(self, command, *args, **kwargs):
        if command.startswith("r\n"):
            out.append(command.split("\n")[1:4])
        return original(self, command, *args, **kwargs)

    monkeypatch.setattr(client, "send_command", send)
    return out


def test_a_column_asks_for_no_name_twice(session, asked):
    def columns():
        return [F.col("a") + 1, F.when(F.col("b").isNull(), F.lit(1)), F.struct(F.col("a"))]

    columns()
    asked.clear()
    columns()
    assert asked == []


def test_what_is_kept_computes_what_it_did(session, asked):
    frame = session.createDataFrame([("a", 1)], "k string, n int")
    schema = session._jvm.org.apache.spark.sql.types.StructType
    assert schema.fromDDL("k string, n int").json() == frame._jdf.schema().json()
    assert frame.select((F.col("n") + 1).alias("n"), F.concat(F.col("k"), F.lit("b"))).first() == (2, "ab")
    assert session._jvm.java.util.ArrayList().size() == 0  # what is not kept


def test_a_class_that_is_not_there_is_asked_for_again(session, asked):
    jvm = session._jvm
    for _ in range(2):
        asked.clear()
        assert not isinstance(jvm.org.apache.spark.sql.NoSuchClass, JavaClass)
        assert asked == [["u", "org.apache.spark.sql.NoSuchClass", jvm._id]]
    functions = jvm.org.apache.spark.sql.functions
    assert functions is jvm.org.apache.spark.sql.functions
    with pytest.raises(Py4JError, match="no_such_function"):
        functions.no_such_function  # noqa: B018 - asking is what is tried


def test_fields_have_their_value_of_each_time(session, asked):
    module = getattr(session._jvm.org.apache.spark.sql, "SparkSession$")
    assert module.__getattr__("MODULE$") is not None
    assert module.__getattr__("MODULE$") is not None
    assert [a[-1] for a in asked].count("MODULE$") == 2


def test_a_session_that_is_made_anew_keeps_them(session):
    before = session._jvm.org
    other = session.newSession()
    keep_names(other)
    assert other._jvm.org is before
    assert isinstance(session._jvm._gateway_client, GatewayClient)


def test_of_a_pyspark_without_such_classes_they_are_asked_for_once(session, asked, monkeypatch):
    kept = vars(session._jvm)
    for name in (*java_names._CLASSES, "org"):
        monkeypatch.delitem(kept, name, raising=False)
    monkeypatch.setattr(java_names, "_CLASSES", ("NoSuchClass", "PythonUtils"))
    for times in (2, 0):
        asked.clear()
        keep_names(session)
        assert len(asked) == times
