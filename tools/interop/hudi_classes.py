"""Apache Hudi's own classes in a bare JVM, without a Spark session: for what works on one file.

The class path has Apache Hudi's bundle and the jars of PySpark, which bring Hadoop.  The JVM ends with this process.
"""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pyspark
from py4j.java_gateway import JavaGateway

from interop.bundles import hudi_bundle, jar

_OPENS = ("java.base/java.lang", "java.base/java.nio", "java.base/java.util", "java.base/sun.nio.ch")


class HudiClasses:
    """A JVM with the classes of one Apache Hudi.  A context manager, or call `close`.

    Attributes:
        version: of the bundle: "0.15.0", "1.0.2" or "1.2.0".
        jvm: py4j's view of the classes.
    """

    def __init__(self, version: str) -> None:
        self.version = version
        jars = Path(pyspark.__file__).parent / "jars"
        options = [f"--add-opens={name}=ALL-UNNAMED" for name in _OPENS]
        self._gateway = JavaGateway.launch_gateway(
            jarpath=str(next(jars.glob("py4j-*.jar"))),
            classpath=f"{jar(hudi_bundle(version))}:{jars}/*",
            javaopts=["-Xmx512m", "-Dlog4j2.level=OFF", *options],
            die_on_exit=True,
        )
        self.jvm: Any = self._gateway.jvm

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the JVM."""
        self._gateway.shutdown()

    # --- HFiles -------------------------------------------------------------------------------------

    def hfile_by_hbase(self, path: Path) -> list[tuple[bytes, bytes]]:
        """All keys and values as HBase's reader gives them, which Apache Hudi has in its bundles before 1.1."""
        reader, scanner = self._hbase(path)
        out = []
        more = scanner.seekTo()
        while more:
            out.append(self._cell(scanner.getCell()))
            more = scanner.next()
        reader.close()
        return out

    def hfile_keys_by_hbase(self, path: Path, keys: list[bytes]) -> list[bytes | None]:
        """The value of each key as HBase's reader finds it."""
        hbase = self.jvm.org.apache.hudi.org.apache.hadoop.hbase
        reader, scanner = self._hbase(path)
        out = []
        for key in keys:
            found = scanner.seekTo(hbase.KeyValue(key, None, None, None))
            out.append(self._cell(scanner.getCell())[1] if found == 0 else None)
        reader.close()
        return out

    def _hbase(self, path: Path) -> tuple[Any, Any]:
        jvm = self.jvm
        hbase = jvm.org.apache.hudi.org.apache.hadoop.hbase
        conf = jvm.org.apache.hadoop.conf.Configuration()
        place = jvm.org.apache.hadoop.fs.Path(str(path))
        cache = hbase.io.hfile.CacheConfig(conf)
        reader = hbase.io.hfile.HFile.createReader(place.getFileSystem(conf), place, cache, True, conf)
        return reader, reader.getScanner(False, True)

    def _cell(self, cell: Any) -> tuple[bytes, bytes]:
        util = self.jvm.org.apache.hudi.org.apache.hadoop.hbase.CellUtil
        return bytes(util.cloneRow(cell)), bytes(util.cloneValue(cell))

    def hfile_by_hudi(self, data: bytes) -> list[tuple[bytes, bytes]]:
        """All keys and values as Apache Hudi's own reader gives them."""
        reader = self._hudi(data)
        out = []
        more = reader.seekTo()
        while more:
            out.append(_key_value(reader.getKeyValue().get()))
            more = reader.next()
        assert len(out) == reader.getNumKeyValueEntries()
        return out

    def hfile_keys_by_hudi(self, data: bytes, keys: list[bytes]) -> list[bytes | None]:
        """The value of each key, which ascend, as Apache Hudi's own reader finds it."""
        reader = self._hudi(data)
        reader.seekTo()
        out = []
        for key in keys:
            wanted = self.jvm.org.apache.hudi.io.hfile.UTF8StringKey(key.decode())
            found = reader.seekTo(wanted)
            out.append(_key_value(reader.getKeyValue().get())[1] if found == 0 else None)
        return out

    def hfile_meta_by_hudi(self, data: bytes, name: str) -> bytes | None:
        """A meta block as Apache Hudi's own reader gives it."""
        found = self._hudi(data).getMetaBlock(name)
        if not found.isPresent():
            return None
        buffer = found.get()
        return bytes(buffer.array())[buffer.position() + buffer.arrayOffset() :][: buffer.remaining()]

    def hfile_info_by_hudi(self, data: bytes, name: str) -> bytes | None:
        """An entry of the file info as Apache Hudi's own reader gives it."""
        found = self._hudi(data).getMetaInfo(self.jvm.org.apache.hudi.io.hfile.UTF8StringKey(name))
        return bytes(found.get()) if found.isPresent() else None

    def _hudi(self, data: bytes) -> Any:
        io = self.jvm.org.apache.hudi.io
        moved = self.version >= "1.1"
        backed = (io if moved else self.jvm.org.apache.hudi.common.util.io).ByteBufferBackedInputStream(data)
        stream = io.ByteArraySeekableDataInputStream(backed)
        reader = io.hfile.HFileReaderImpl(stream, len(data))
        reader.initializeMetadata()
        return reader

    def write_hfile_by_hbase(
        self, path: Path, pairs: list[tuple[bytes, bytes]], codec: str, block_size: int
    ) -> None:
        """An HFile as Apache Hudi before 1.1 writes it, over HBase's writer."""
        jvm = self.jvm
        hbase = jvm.org.apache.hudi.org.apache.hadoop.hbase
        conf = jvm.org.apache.hadoop.conf.Configuration()
        place = jvm.org.apache.hadoop.fs.Path(str(path))
        algorithm = hbase.io.compress.Compression.Algorithm.valueOf(codec)
        comparator = jvm.org.apache.hudi.io.storage.HoodieHBaseKVComparator()
        context = (
            hbase.io.hfile.HFileContextBuilder()
            .withBlockSize(block_size)
            .withCompression(algorithm)
            .withCellComparator(comparator)
            .build()
        )
        factory = hbase.io.hfile.HFile.getWriterFactory(conf, hbase.io.hfile.CacheConfig(conf))
        writer = factory.withPath(place.getFileSystem(conf), place).withFileContext(context).create()
        for key, value in pairs:
            writer.append(hbase.KeyValue(key, None, None, value))
        writer.close()

    def write_hfile_by_hudi(
        self, path: Path, pairs: list[tuple[bytes, bytes]], codec: str, block_size: int
    ) -> None:
        """An HFile by Apache Hudi's own writer, which it has from 1.1 on."""
        jvm = self.jvm
        hfile = jvm.org.apache.hudi.io.hfile
        compression = jvm.org.apache.hudi.io.compress.CompressionCodec.valueOf(codec)
        context = hfile.HFileContext.builder().compressionCodec(compression).blockSize(block_size).build()
        stream = jvm.java.io.FileOutputStream(str(path))
        writer = hfile.HFileWriterImpl(context, stream)
        for key, value in pairs:
            writer.append(key.decode(), value)
        writer.close()
        stream.close()

    def avro_reader(self, path: Path, native: bool) -> Any:
        """Apache Hudi's reader of HFile base files: over HBase's or its own; before 1.1."""
        jvm = self.jvm
        conf = jvm.org.apache.hadoop.conf.Configuration()
        storage_conf = jvm.org.apache.hudi.storage.hadoop.HadoopStorageConfiguration(conf)
        place = jvm.org.apache.hudi.storage.StoragePath(str(path))
        if not native:
            return jvm.org.apache.hudi.io.hadoop.HoodieHBaseAvroHFileReader(storage_conf, place)
        storage = jvm.org.apache.hudi.storage.HoodieStorageUtils.getStorage(place, storage_conf)
        none = jvm.org.apache.hudi.common.util.Option.empty()
        return jvm.org.apache.hudi.io.storage.HoodieNativeAvroHFileReader(storage, place, none)

    def records_of(self, reader: Any, keys: list[str] | None = None) -> list[str]:
        """The records of such a reader as JSON, all or those of some keys."""
        schema = reader.getSchema()
        if keys is None:
            records = reader.getIndexedRecordIterator(schema, schema)
        else:
            wanted = self.jvm.java.util.ArrayList()
            for key in keys:
                wanted.add(key)
            records = reader.getIndexedRecordsByKeysIterator(wanted, schema)
        out = []
        while records.hasNext():
            out.append(str(records.next().toString()))
        return out


def _key_value(pair: Any) -> tuple[bytes, bytes]:
    key = pair.getKey()
    row = bytes(key.getBytes())[key.getContentOffset() :][: key.getContentLength()]
    value = bytes(pair.getBytes())[pair.getValueOffset() :][: pair.getValueLength()]
    return row, value
