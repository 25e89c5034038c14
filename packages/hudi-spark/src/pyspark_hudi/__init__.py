"""Entry point of Spark 4's data source discovery: `DefaultSource` of `pyspark_*` modules.

Nothing but the class is here, and all else is imported when it is used: an error while any such module is
imported takes the look-up from every format of the session.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource

if TYPE_CHECKING:
    from pyspark.sql.types import StructType


class DefaultSource(DataSource):  # type: ignore[misc]
    """`format("hudi")` without an import of hudi_spark; see `hudi_spark.datasource`."""

    @classmethod
    def name(cls) -> str:
        return "hudi"

    def schema(self) -> StructType:
        from hudi_spark.datasource import table_schema

        return table_schema(self.options)

    def reader(self, schema: StructType) -> Any:
        from hudi_spark.datasource import HudiReader

        return HudiReader(dict(self.options), schema)

    def streamReader(self, schema: StructType) -> Any:
        from hudi_spark.datasource import HudiStreamReader

        return HudiStreamReader(dict(self.options), schema)

    def streamWriter(self, schema: StructType, overwrite: bool) -> Any:
        from hudi_spark.datasource import refuse_stream

        refuse_stream()

    def writer(self, schema: StructType, overwrite: bool) -> Any:
        from hudi_spark.datasource import HudiWriter

        return HudiWriter(dict(self.options), schema, overwrite)
