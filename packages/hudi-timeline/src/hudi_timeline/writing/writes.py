"""The writing half of `HudiTable`: each method is one commit, run on the engine without a JVM."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from hudi_format.errors import NotAHudiTableError, OptionError, WriteConflictError
from hudi_format.schema.meta_fields import PARTITION_PATH, RECORD_KEY
from hudi_format.storage.hadoop_options import without_hadoop_options
from hudi_format.storage.open import open_storage
from hudi_format.storage.protocol import Storage
from hudi_timeline import table_config
from hudi_timeline.file_system_view.listing import list_partitions
from hudi_timeline.options.user_options import as_options, call_options
from hudi_timeline.table_config import TableConfig

if TYPE_CHECKING:
    from hudi_format.keygen.record_keys import KeySpec
    from hudi_format.schema.changes import SchemaChange
    from hudi_timeline.reading.scan import Scan
    from hudi_timeline.transaction.write_basis import Basis
    from hudi_timeline.validation.precommit import Validator
    from hudi_timeline.writing.local_engine import LocalEngine
    from hudi_timeline.writing.result import CommitResult

log = logging.getLogger("hudi")

OPERATION = "hoodie.datasource.write.operation"
# How often the rows of a filter are read, where others commit before they are deleted.
TRIES_TO_READ = 5
PARTITIONS_TO_DELETE = "hoodie.datasource.write.partitions.to.delete"


def create_table(
    uri: str | PathLike[str],
    schema: pa.Schema,
    *,
    name: str,
    table_type: str,
    record_keys: Iterable[str],
    partition_fields: Iterable[str],
    ordering_fields: Iterable[str],
    options: Mapping[str, object] | None,
    storage_options: Mapping[str, Any] | None,
) -> Storage:
    """Make an empty table and return its storage; the first write needs no options then.

    Raises:
        TableExistsError: there is one already.
        OptionError, SchemaError: what was given does not make a table.
    """
    from hudi_format.schema.arrow import normalize_schema
    from hudi_format.schema.avro import to_avro
    from hudi_timeline.options import parse_write_options
    from hudi_timeline.writing import keys as keying
    from hudi_timeline.writing import write_plan
    from hudi_timeline.writing.new_table import table_properties
    from hudi_timeline.writing.write_schema import about_zones

    given = as_options(options)
    storage = open_storage(uri, storage_options, options=given)
    given = without_hadoop_options(given)
    keys, partitions, ordering = list(record_keys), list(partition_fields), list(ordering_fields)
    if len(ordering) > 1:
        raise OptionError(
            f"a table of version 6 has one ordering field, not {len(ordering)}: {', '.join(ordering)}",
            remedy="name the field that decides.",
        )
    merged = {
        "hoodie.table.name": name,
        "hoodie.datasource.write.table.type": table_type,
        # None: keys are made up.
        **({"hoodie.datasource.write.recordkey.field": ",".join(keys)} if keys else {}),
        **({"hoodie.datasource.write.partitionpath.field": ",".join(partitions)} if partitions else {}),
        **({"hoodie.datasource.write.precombine.field": ordering[0]} if ordering else {}),
        **given,
    }
    config = parse_write_options(merged)
    normal = normalize_schema(schema)
    key_spec: KeySpec = keying.key_spec_of(config, None)
    for fields, what in ((key_spec.key_fields, "record key"), (key_spec.partition_fields, "partition")):
        write_plan.require(normal, fields, what, storage)
    if ordering:
        write_plan.require(normal, ordering, "ordering", storage)
    properties = table_properties(
        config, key_spec, ordering[0] if ordering else None, storage, config.index_type
    )
    properties[table_config.CREATE_SCHEMA] = to_avro(normal, name)
    table_config.create(storage, properties)
    for warning in about_zones(normal, ()):
        log.warning("%s: %s", storage.uri, warning)
    return storage


Rules: TypeAlias = Mapping[str, str | pc.Expression] | None


class WriteMethods:
    """Mixed into `HudiTable`, which reads.

    Every write takes `validators`: functions that see the change before it is committed and may refuse it, see
    `hudi_timeline.validation.precommit`.  Writes of rows take `rules`: conditions by name that each row must meet,
    text or pyarrow expressions, see `hudi_timeline.validation.row_rules`.  `options` may name both as well, and a
    quarantine for rows that break a rule; without one they fail the write.

    Each method imports what it does: a process that only reads needs none of it.
    """

    if TYPE_CHECKING:  # what HudiTable has
        _storage: Storage

        @property
        def config(self) -> TableConfig: ...

        @property
        def schema(self) -> pa.Schema: ...

        _options: Mapping[str, str]

        def read(
            self,
            columns: Sequence[str] | None = None,
            filter: str | pc.Expression | None = None,
            *,
            meta_columns: bool = True,
        ) -> Scan: ...

    def _write(
        self,
        name: str,
        data: object | None,
        options: Mapping[str, object] | None,
        validators: Sequence[Validator] = (),
        rules: Rules = None,
    ) -> CommitResult:
        from hudi_format.schema.input_rows import as_reader, types_are_guessed
        from hudi_timeline.writing.local_engine import LocalEngine

        rows = None if data is None else as_reader(data, self._known_schema)
        engine = LocalEngine(guessed=types_are_guessed(data))
        return self._execute(engine, name, rows, options, validators, rules)

    def _known_schema(self) -> pa.Schema | None:
        try:
            return self.schema
        except NotAHudiTableError:  # not made yet, or without a schema
            return None

    def _execute(
        self,
        engine: LocalEngine,
        name: str,
        data: pa.RecordBatchReader | pa.Table | None,
        options: Mapping[str, object] | None,
        validators: Sequence[Validator] = (),
        rules: Rules = None,
        read_from: Basis | None = None,
    ) -> CommitResult:
        from hudi_timeline.writing.operation import execute

        given = call_options(self._options, options, self._storage.uri)
        if given.get(OPERATION, "").lower() != f"{name}_prepped":
            given[OPERATION] = name
        return execute(
            engine, self._storage, data, given, validators=validators, rules=rules, read_from=read_from
        )

    def schema_changes(
        self, data: object, *, operation: str = "upsert", options: Mapping[str, object] | None = None
    ) -> tuple[SchemaChange, ...]:
        """What a write of this data would change in the table's schema; nothing is written.

        Raises:
            SchemaError, OptionError ...: what the write itself would refuse before it begins.
        """
        from hudi_format.schema.input_rows import as_reader, types_are_guessed
        from hudi_timeline.writing.local_engine import LocalEngine
        from hudi_timeline.writing.operation import check

        given = {**self._options, **as_options(options), OPERATION: operation}
        engine = LocalEngine(guessed=types_are_guessed(data))
        return check(engine, self._storage, as_reader(data, self._known_schema), given)

    def insert(
        self,
        data: object,
        *,
        options: Mapping[str, object] | None = None,
        validators: Sequence[Validator] = (),
        rules: Rules = None,
    ) -> CommitResult:
        """Add rows; keys are not looked up, so a key that is there already stands twice afterwards."""
        return self._write("insert", data, options, validators, rules)

    def upsert(
        self,
        data: object,
        *,
        options: Mapping[str, object] | None = None,
        validators: Sequence[Validator] = (),
        rules: Rules = None,
    ) -> CommitResult:
        """Add rows whose key is new in their partition, and update the others.

        With the option `hoodie.datasource.write.operation=upsert_prepped` rows that were read from the table go back to
        where their meta columns say, and no key is looked up.
        """
        return self._write("upsert", data, options, validators, rules)

    def bulk_insert(
        self,
        data: object,
        *,
        options: Mapping[str, object] | None = None,
        validators: Sequence[Validator] = (),
        rules: Rules = None,
    ) -> CommitResult:
        """Add rows in one streaming pass, into new files only."""
        return self._write("bulk_insert", data, options, validators, rules)

    def insert_overwrite(
        self,
        data: object,
        *,
        options: Mapping[str, object] | None = None,
        validators: Sequence[Validator] = (),
        rules: Rules = None,
    ) -> CommitResult:
        """Replace the partitions that the rows fall into by the rows."""
        return self._write("insert_overwrite", data, options, validators, rules)

    def insert_overwrite_table(
        self,
        data: object,
        *,
        options: Mapping[str, object] | None = None,
        validators: Sequence[Validator] = (),
        rules: Rules = None,
    ) -> CommitResult:
        """Replace all rows of the table; earlier states stay readable by time travel."""
        return self._write("insert_overwrite_table", data, options, validators, rules)

    def delete_partitions(
        self,
        partitions: str | Iterable[str],
        *,
        missing_ok: bool = False,
        options: Mapping[str, object] | None = None,
        validators: Sequence[Validator] = (),
    ) -> CommitResult:
        """Remove all rows of partitions, given by path; `*` stands for any text.

        Args:
            missing_ok: names that are no partitions give a warning, as the operation delete_partition does, and
                no error.

        Raises:
            UnknownPartitionError: a name or pattern that no partition answers to; nothing was deleted.
        """
        from hudi_timeline.writing.new_table import choose, require_all

        names = [partitions] if isinstance(partitions, str) else list(partitions)
        if not names:
            raise OptionError(
                "no partitions were given",
                table=self._storage.uri,
                remedy="name one, or use a pattern such as '*'.",
            )
        for name in names:
            if not isinstance(name, str) or "," in name:
                raise OptionError(
                    f"{name!r} cannot be given as a partition: it must be text without a comma, which stands "
                    "between partitions",
                    table=self._storage.uri,
                    remedy="delete such a partition's rows with delete() and a filter.",
                )
        if not missing_ok:
            existing = list_partitions(self._storage, self.config)
            require_all(choose(names, (), existing), existing, table=self._storage.uri)
        return self._write(
            "delete_partition", None, {**(options or {}), PARTITIONS_TO_DELETE: ",".join(names)}, validators
        )

    def delete(
        self,
        rows_or_filter: object,
        *,
        options: Mapping[str, object] | None = None,
        validators: Sequence[Validator] = (),
    ) -> CommitResult:
        """Remove rows: by data that holds their key and partition columns, or by a filter.

        A filter is a `pyarrow.compute.Expression` or a text such as `"city = 'oslo' and fare < 3"`.  It is asked again
        where others commit before the rows that it found are deleted.
        """
        from hudi_timeline.transaction.write_basis import Basis
        from hudi_timeline.writing.local_engine import LocalEngine, StoredRowsEngine

        if isinstance(rows_or_filter, (pc.Expression, str)):
            config = self.config
            columns = list(dict.fromkeys((*config.record_key_fields, *config.partition_fields)))
            roots = list(dict.fromkeys(c.partition(".")[0] for c in columns))
            engine = StoredRowsEngine if config.populate_meta_fields else LocalEngine
            wanted = [RECORD_KEY, PARTITION_PATH, *roots] if config.populate_meta_fields else roots
            for tries_left in reversed(range(TRIES_TO_READ)):
                scan = self.read(wanted, rows_or_filter)
                read_from = Basis.of(scan.snapshot.config, scan.snapshot.timeline)
                try:
                    return self._execute(
                        engine(), "delete", scan.to_arrow(), options, validators, read_from=read_from
                    )
                except WriteConflictError as e:
                    if not e.details.get("read_again") or not tries_left:
                        raise
        return self._write("delete", rows_or_filter, options, validators)
