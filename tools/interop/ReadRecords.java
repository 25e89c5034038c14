import java.io.ByteArrayOutputStream;
import java.lang.reflect.Method;
import java.util.Base64;
import java.util.Map;
import java.util.TreeMap;

import org.apache.avro.generic.GenericDatumWriter;
import org.apache.avro.generic.IndexedRecord;
import org.apache.avro.io.BinaryEncoder;
import org.apache.avro.io.EncoderFactory;
import org.apache.hadoop.conf.Configuration;
import org.apache.hudi.common.model.DeleteRecord;
import org.apache.hudi.common.model.HoodieLogFile;
import org.apache.hudi.common.model.HoodieRecord;
import org.apache.hudi.common.model.HoodieRecord.HoodieRecordType;
import org.apache.hudi.common.table.log.HoodieLogFormat;
import org.apache.hudi.common.table.log.block.HoodieDataBlock;
import org.apache.hudi.common.table.log.block.HoodieDeleteBlock;
import org.apache.hudi.common.table.log.block.HoodieLogBlock;
import org.apache.hudi.common.util.collection.ClosableIterator;
import org.apache.hudi.storage.StoragePath;
import org.apache.hudi.storage.hadoop.HoodieHadoopStorage;

/**
 * The blocks of log files as Apache Hudi's own reader finds them: tab-separated lines, records in Avro's binary
 * encoding, which keeps every value and its type.  For any release from 0.15 on.
 */
public class ReadRecords {
  static String text(Object value) {
    return Base64.getEncoder().encodeToString(String.valueOf(value).getBytes(java.nio.charset.StandardCharsets.UTF_8));
  }

  static void line(Object... parts) {
    StringBuilder out = new StringBuilder("log");
    for (Object part : parts) {
      out.append('\t').append(part);
    }
    System.out.println(out);
  }

  static String binary(IndexedRecord record) throws Exception {
    ByteArrayOutputStream out = new ByteArrayOutputStream();
    BinaryEncoder encoder = EncoderFactory.get().binaryEncoder(out, null);
    new GenericDatumWriter<IndexedRecord>(record.getSchema()).write(record, encoder);
    encoder.flush();
    return Base64.getEncoder().encodeToString(out.toByteArray());
  }

  static void print(HoodieLogBlock block) throws Exception {
    Map<String, String> header = new TreeMap<>();
    block.getLogBlockHeader().forEach((key, value) -> {
      if (!key.name().equals("SCHEMA")) {
        header.put(key.name(), value);
      }
    });
    line("block", block.getBlockType().name(), header);
    if (block instanceof HoodieDataBlock) {
      try (ClosableIterator<HoodieRecord<Object>> records =
          ((HoodieDataBlock) block).getRecordIterator(HoodieRecordType.AVRO)) {
        while (records.hasNext()) {
          line("record", binary((IndexedRecord) records.next().getData()));
        }
      }
    } else if (block instanceof HoodieDeleteBlock) {
      for (DeleteRecord delete : ((HoodieDeleteBlock) block).getRecordsToDelete()) {
        Comparable<?> ordering = delete.getOrderingValue();
        line("delete", text(delete.getRecordKey()), delete.getPartitionPath() == null ? "null"
            : text(delete.getPartitionPath()), ordering == null ? "" : ordering.getClass().getSimpleName(),
            text(ordering));
      }
    }
  }

  /** The reader of a file; the type of its last argument changed in 1.1. */
  static HoodieLogFormat.Reader open(String path) throws Exception {
    for (Method m : HoodieLogFormat.class.getMethods()) {
      if (m.getName().equals("newReader") && m.getParameterCount() == 3) {
        return (HoodieLogFormat.Reader) m.invoke(null, new HoodieHadoopStorage(path, new Configuration()),
            new HoodieLogFile(new StoragePath(path)), null);
      }
    }
    throw new IllegalStateException("no reader of log files");
  }

  /** Arguments: a file with the paths, a line each. */
  public static void main(String[] arguments) throws Exception {
    for (String path : java.nio.file.Files.readAllLines(java.nio.file.Paths.get(arguments[0]))) {
      line("file", path);
      try (HoodieLogFormat.Reader reader = open(path)) {
        while (reader.hasNext()) {
          print(reader.next());
        }
      } catch (Throwable e) {
        Throwable cause = e;
        while (cause.getCause() != null) {
          cause = cause.getCause();
        }
        line("error", text(e + " / " + cause));
        if (arguments.length > 1) e.printStackTrace();
      }
    }
  }
}
