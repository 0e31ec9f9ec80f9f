package dynamic_table;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.spark.api.python.PythonUtils;
import org.apache.spark.sql.Column;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.datasources.FileFormat;
import org.apache.spark.sql.execution.datasources.FileStatusCache;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.InMemoryFileIndex;
import org.apache.spark.sql.execution.datasources.PartitionPath;
import org.apache.spark.sql.execution.datasources.PartitionSpec;
import org.apache.spark.sql.execution.datasources.orc.OrcFileFormat;
import org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat;
import org.apache.spark.sql.functions;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;
import scala.Option;

/** Data frames over data files, described in JSON by file_relation.py and native_columns.py. */
public final class FileRelations {
    private static final long BLOCK_BYTES = 128L * 1024 * 1024;
    private static final ObjectMapper JSON = new ObjectMapper();

    /** Sizes of files that a table's metadata has, so that Spark does not ask the store for them. */
    public static final class KnownFiles extends FileStatusCache {
        private final Map files = new HashMap();

        public void add(Path path, long size) {
            files.put(path, new FileStatus[] {new FileStatus(size, false, 1, BLOCK_BYTES, 0, path)});
        }

        public Option getLeafFiles(Path path) {
            return Option.apply(files.get(path));
        }

        public void putLeafFiles(Path path, FileStatus[] found) {
        }

        /** Keep the sizes: data files never change. */
        public void invalidateAll() {
        }
    }

    /** Return the rows of the files; partitionRows has the values of the partitions, null without partitions. */
    public Dataset relation(SparkSession session, String description, Dataset partitionRows) throws Exception {
        JsonNode given = JSON.readTree(description);
        StructType schema = struct(given.get("schema"));
        scala.collection.immutable.Map options = PythonUtils.toScalaMap(texts(given.get("options")));
        StructType partitioned = new StructType();
        Option partitions = Option.empty();
        if (partitionRows != null) {
            partitioned = struct(given.get("partitions").get("schema"));
            partitions = Option.apply(spec(given.get("partitions"), partitioned, partitionRows));
        }
        KnownFiles known = new KnownFiles();
        List paths = new ArrayList();
        Iterator sizes = given.get("sizes").elements();
        Iterator names = given.get("paths").elements();
        while (names.hasNext()) {
            Path path = new Path(((JsonNode) names.next()).asText());
            paths.add(path);
            known.add(path, ((JsonNode) sizes.next()).asLong());
        }
        InMemoryFileIndex index = new InMemoryFileIndex(
            session, PythonUtils.toSeq(paths).toList(), options, Option.apply(schema), known, partitions,
            Option.empty());
        FileFormat format = given.get("extension").asText().equals("parquet")
            ? (FileFormat) new ParquetFileFormat() : (FileFormat) new OrcFileFormat();
        return session.baseRelationToDataFrame(
            new HadoopFsRelation(index, partitioned, schema, Option.empty(), format, options, session));
    }

    /** Return the rows with the described columns, in this order. */
    public Dataset select(Dataset rows, String description) throws Exception {
        JsonNode given = JSON.readTree(description);
        Column[] columns = new Column[given.size()];
        for (int i = 0; i < columns.length; i++) {
            columns[i] = column((JsonNode) given.get(i));
        }
        return (Dataset) rows.select(columns);
    }

    private static Column column(JsonNode given) {
        Column value = given.get("stored").isNull()
            ? functions.lit(null) : functions.col("`" + given.get("stored").asText().replace("`", "``") + "`");
        String hidden = given.get("hidden").asText();
        if (hidden.equals("float")) {
            value = functions.nanvl(value, value);
        } else if (hidden.equals("date")) {
            value = functions.date_from_unix_date(functions.unix_date(value));
        } else if (hidden.equals("moment")) {
            value = functions.timestamp_micros(functions.unix_micros(value));
        } else if (!hidden.isEmpty()) {
            throw new IllegalArgumentException("unknown way to hide a column: " + hidden);
        }
        JsonNode type = given.get("type");
        return (type.isNull() ? value : value.cast(DataType.fromJson(type.toString()))).as(given.get("name").asText());
    }

    private static PartitionSpec spec(JsonNode given, StructType schema, Dataset rows) {
        // A local relation is collected without a job.
        InternalRow[] values = rows.queryExecution().executedPlan().executeCollect();
        List found = new ArrayList();
        Iterator directories = given.get("directories").fields();
        while (directories.hasNext()) {
            Map.Entry each = (Map.Entry) directories.next();
            InternalRow row = values[((JsonNode) each.getValue()).asInt()].copy();
            found.add(new PartitionPath(row, new Path((String) each.getKey())));
        }
        return new PartitionSpec(schema, PythonUtils.toSeq(found).toList());
    }

    private static StructType struct(JsonNode given) {
        return (StructType) DataType.fromJson(given.toString());
    }

    private static Map texts(JsonNode given) {
        Map found = new HashMap();
        Iterator entries = given.fields();
        while (entries.hasNext()) {
            Map.Entry each = (Map.Entry) entries.next();
            found.put(each.getKey(), ((JsonNode) each.getValue()).asText());
        }
        return found;
    }
}
