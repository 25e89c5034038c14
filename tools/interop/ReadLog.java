import java.util.Arrays;
import java.util.Map;
import java.util.TreeMap;

import org.apache.avro.Schema;
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
import org.apache.hudi.storage.HoodieStorage;
import org.apache.hudi.storage.StoragePath;
import org.apache.hudi.storage.hadoop.HoodieHadoopStorage;

/** Prints the blocks of log files as Apache Hudi's own reader finds them: tab-separated lines, records as JSON. */
public class ReadLog {
  static void line(Object... parts) {
    StringBuilder out = new StringBuilder("log");
    for (Object part : parts) {
      out.append('\t').append(part);
    }
    System.out.println(out);
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
          line("record", records.next().getData());
        }
      }
    } else if (block instanceof HoodieDeleteBlock) {
      for (DeleteRecord delete : ((HoodieDeleteBlock) block).getRecordsToDelete()) {
        Comparable<?> ordering = delete.getOrderingValue();
        line("delete", delete.getRecordKey(), delete.getPartitionPath(),
            ordering == null ? "" : ordering.getClass().getSimpleName(), ordering);
      }
    }
  }

  /** Arguments: the schema of change blocks, which their reader asks for, and paths. */
  public static void main(String[] arguments) throws Exception {
    Schema changes = new Schema.Parser().parse(arguments[0]);
    for (String path : Arrays.copyOfRange(arguments, 1, arguments.length)) {
      HoodieStorage storage = new HoodieHadoopStorage(path, new Configuration());
      line("file", path);
      try (HoodieLogFormat.Reader reader =
          HoodieLogFormat.newReader(storage, new HoodieLogFile(new StoragePath(path)),
              path.endsWith(".cdc") ? changes : null)) {
        while (reader.hasNext()) {
          print(reader.next());
        }
      }
    }
  }
}
