"""Names of Java classes and static methods that a JVM is asked for once.

PySpark asks the JVM what `functions`, and then what `functions.col` is, at each column of each plan.  A name that may
be a package is looked for as a class in every jar of the class path: with the 300 of a Spark a question takes one or
two milliseconds of the driver's processor, and a write of a few rows put 300 of them.
"""

from __future__ import annotations

from typing import Any

from py4j.java_gateway import JavaClass, JavaMember, JavaPackage
from pyspark.sql import SparkSession

# What PySpark's columns, schemas, functions and sessions name: 3.5 by what it imports into the view of the JVM, 4 in
# full.
_CLASSES = (
    "functions",
    "PythonUtils",
    "SparkSession",
    "SimplePythonFunction",
    "org.apache.spark.sql.functions",
    "org.apache.spark.sql.api.python.PythonSQLUtils",
    "org.apache.spark.sql.catalyst.trees.PySparkCurrentOrigin",
    "org.apache.spark.sql.classic.SparkSession",
    "org.apache.spark.sql.execution.python.UserDefinedPythonFunction",
)


def keep_names(spark: SparkSession) -> None:
    """Answers of the JVM about PySpark's own names kept for its later plans, in this process.

    They are facts of a class path that only grows: that a name is a class, a package of Spark or a static method.
    That one is none is asked again each time, as is the value of a field.
    """
    jvm: Any = getattr(spark, "_jvm", None)
    if jvm is None or "org" in vars(jvm):
        return
    for name in _CLASSES:
        found = getattr(jvm, name)
        if isinstance(found, JavaClass):  # else this PySpark has no such class, and the answer is a package
            setattr(jvm, name, _KeptClass(found._fqn, found._gateway_client))
    # Last, as it says that all are there.
    jvm.org = _KeptPackage("org", jvm._gateway_client, jvm._id)


class _KeptClass(JavaClass):  # type: ignore[misc]
    """A class whose static methods are looked for once."""

    def __getattr__(self, name: str) -> Any:
        found = super().__getattr__(name)
        if isinstance(found, JavaMember):
            self.__dict__[name] = found
        return found


class _KeptPackage(JavaPackage):  # type: ignore[misc]
    """A package whose classes and packages are looked for once.

    A name with a capital that is answered as a package is a class that is not there yet: a jar may bring it.
    """

    def __getattr__(self, name: str) -> Any:
        found = super().__getattr__(name)
        if isinstance(found, JavaClass):
            found = _KeptClass(found._fqn, found._gateway_client)
        elif isinstance(found, JavaPackage) and name[:1].islower():
            found = _KeptPackage(found._fqn, self._gateway_client, self._jvm_id)
        else:
            return found
        self.__dict__[name] = found
        return found
