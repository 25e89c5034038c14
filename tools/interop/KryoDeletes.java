import java.io.ByteArrayOutputStream;
import java.math.BigDecimal;
import java.sql.Date;
import java.sql.Timestamp;
import java.time.Instant;
import java.time.LocalDate;
import java.util.HexFormat;

import com.esotericsoftware.kryo.Kryo;
import com.esotericsoftware.kryo.io.Output;
import org.apache.avro.util.Utf8;
import org.apache.hudi.common.model.DeleteRecord;
import org.apache.hudi.common.model.HoodieKey;
import org.apache.hudi.common.util.SerializationUtils;
import org.objenesis.strategy.StdInstantiatorStrategy;

/** Prints delete lists of versions 1 and 2 as Apache Hudi's own classes serialise them: a name and hex bytes a line. */
public class KryoDeletes {
  static void print(String name, byte[] data) {
    System.out.println("kryo " + name + " " + HexFormat.of().formatHex(data));
  }

  static void print(String name, Object value) throws Exception {
    print(name, SerializationUtils.serialize(value));
  }

  /** Without the registrations that came with 0.13: a Utf8 goes field by field. */
  static byte[] unregistered(Object value) {
    Kryo kryo = new Kryo();
    kryo.setRegistrationRequired(false);
    kryo.setInstantiatorStrategy(new Kryo.DefaultInstantiatorStrategy(new StdInstantiatorStrategy()));
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    Output output = new Output(bytes);
    kryo.writeClassAndObject(output, value);
    output.close();
    return bytes.toByteArray();
  }

  static DeleteRecord[] one(Comparable<?> ordering) {
    return new DeleteRecord[] {DeleteRecord.create("k", "p", ordering), DeleteRecord.create("l", "p", ordering)};
  }

  public static void main(String[] ignored) throws Exception {
    HoodieKey twice = new HoodieKey("abc", "abc");
    print("v1_keys", new HoodieKey[] {
        new HoodieKey("k000", "p/1"), new HoodieKey("schl\u00fcssel", "p/1"), new HoodieKey("x", ""),
        new HoodieKey("", "p"), new HoodieKey("\ud83d\ude00 z", "\u20ac")});
    print("v1_same_object", new HoodieKey[] {twice, twice, new HoodieKey("d", "abc")});
    print("v1_no_partition", new HoodieKey[] {new HoodieKey("a", null)});
    print("v1_none", new HoodieKey[] {});
    HoodieKey[] many = new HoodieKey[150];
    for (int i = 0; i < many.length; i++) {
      many[i] = new HoodieKey("key-" + "x".repeat(i % 9) + i, "part-" + i % 7);
    }
    print("v1_many", many);
    print("v2_mixed", new DeleteRecord[] {
        DeleteRecord.create("k0", "p", 5L), DeleteRecord.create("k1", "p", -7), DeleteRecord.create("k2", "q", "text"),
        DeleteRecord.create("k3", "p"), DeleteRecord.create("k4", "p", Long.MIN_VALUE)});
    print("v2_double", one(1.5));
    print("v2_float", one(2.5f));
    print("v2_decimal", one(new BigDecimal("-12.345")));
    print("v2_decimal_zero", one(BigDecimal.ZERO));
    print("v2_boolean", one(true));
    print("v2_date", one(Date.valueOf("2024-01-02")));
    print("v2_timestamp", one(Timestamp.from(Instant.parse("2024-01-02T03:04:05.678Z"))));
    print("v2_local_date", one(LocalDate.of(2024, 1, 2)));
    print("v2_instant", one(Instant.parse("2024-01-02T03:04:05.678901Z")));
    print("v2_utf8", one(new Utf8("utf \u00e4")));
    print("v2_utf8_by_fields", unregistered(one(new Utf8("utf \u00e4"))));
    print("v2_utf8_empty_by_fields", unregistered(one(new Utf8(""))));
    print("v2_by_0_12", unregistered(new DeleteRecord[] {
        DeleteRecord.create("k0", "p", 5L), DeleteRecord.create("k1", "p", "5")}));
    print("v2_none", new DeleteRecord[] {});
    print("v2_unknown", one(new StringBuilder("b")));
  }
}
