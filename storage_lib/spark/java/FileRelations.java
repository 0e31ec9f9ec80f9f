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
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.NamedExpression$;
import org.apache.spark.sql.catalyst.expressions.ScalarSubquery;
import org.apache.spark.sql.catalyst.expressions.UnsafeArrayData;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LocalRelation;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.types.DataTypeUtils;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.classic.ExpressionUtils;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.datasources.FileFormat;
import org.apache.spark.sql.execution.datasources.FileStatusCache;
import org.apache.spark.sql.execution.datasources.FileStatusWithMetadata;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.InMemoryFileIndex;
import org.apache.spark.sql.execution.datasources.LogicalRelation$;
import org.apache.spark.sql.execution.datasources.PartitionDirectory;
import org.apache.spark.sql.execution.datasources.PartitionPath;
import org.apache.spark.sql.execution.datasources.PartitionSpec;
import org.apache.spark.sql.execution.datasources.orc.OrcFileFormat;
import org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat;
import org.apache.spark.sql.functions;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.Platform;
import scala.Option;

/** Data frames over data files, described in JSON by file_relation.py and native_columns.py. */
public final class FileRelations {
    private static final long BLOCK_BYTES = 128L * 1024 * 1024;
    private static final String WORDS = "words";
    private static final scala.collection.immutable.Seq NOTHING = PythonUtils.toSeq(new ArrayList()).toList();
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

    /** Files that have one more partition value each: a number. */
    public static final class NumberedFiles extends InMemoryFileIndex {
        private final StructType partitioned;
        private final Map bases;

        public NumberedFiles(
            SparkSession session, List paths, scala.collection.immutable.Map options, StructType schema,
            FileStatusCache known, Option partitions, StructType partitioned, Map bases) {
            super(session, PythonUtils.toSeq(paths).toList(), options, Option.apply(schema), known, partitions,
                Option.empty());
            this.partitioned = partitioned;
            this.bases = bases;
        }

        /** Spark computes equal relations once, so their bases have to be equal too. */
        public boolean equals(Object other) {
            return super.equals(other) && other instanceof NumberedFiles
                && bases.equals(((NumberedFiles) other).bases);
        }

        public int hashCode() {
            return super.hashCode();
        }

        public scala.collection.immutable.Seq listFiles(
            scala.collection.immutable.Seq partitionFilters, scala.collection.immutable.Seq dataFilters) {
            List found = new ArrayList();
            scala.collection.Iterator directories = super.listFiles(partitionFilters, dataFilters).iterator();
            while (directories.hasNext()) {
                PartitionDirectory directory = (PartitionDirectory) directories.next();
                Object[] values = new Object[partitioned.length() + 1];
                for (int i = 0; i < partitioned.length(); i++) {
                    values[i] = directory.values().get(i, partitioned.apply(i).dataType());
                }
                scala.collection.Iterator files = directory.files().iterator();
                while (files.hasNext()) {
                    FileStatusWithMetadata file = (FileStatusWithMetadata) files.next();
                    Object[] ofFile = (Object[]) values.clone();
                    ofFile[partitioned.length()] = bases.get(file.getPath());
                    List alone = new ArrayList();
                    alone.add(file);
                    found.add(new PartitionDirectory(
                        new GenericInternalRow(ofFile), PythonUtils.toSeq(alone).toList()));
                }
            }
            return PythonUtils.toSeq(found).toList();
        }
    }

    /**
     * Return the rows of the files; partitionRows has the values of the partitions, null without partitions. Rows whose
     * bit is set in bits are left out: it has words of 64 rows, the first row in the lowest bit, and the place of a row
     * is the sum of its file's base and its position in the file.
     */
    public Dataset rows(SparkSession session, String description, Dataset partitionRows, byte[] bits)
        throws Exception {
        JsonNode given = JSON.readTree(description);
        // One plan, because each step of a data frame would be analysed on its own.
        LogicalPlan plan = LogicalRelation$.MODULE$.apply(relation(session, given, partitionRows), false);
        if (bits != null) {
            Column stays = stays(bits, given.get("base").asText(), given.get("position").asText());
            plan = new Filter(session.expression(stays), plan);
        }
        if (given.hasNonNull("condition")) {
            plan = new Filter(session.expression(functions.expr(given.get("condition").asText())), plan);
        }
        if (given.hasNonNull("columns")) {
            plan = new Project(columns(session, given.get("columns")), plan);
        }
        return Dataset.ofRows(session, plan);
    }

    private static HadoopFsRelation relation(SparkSession session, JsonNode given, Dataset partitionRows) {
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
        InMemoryFileIndex index;
        if (given.get("bases").isNull()) {
            index = new InMemoryFileIndex(
                session, PythonUtils.toSeq(paths).toList(), options, Option.apply(schema), known, partitions,
                Option.empty());
        } else {
            Map bases = new HashMap();
            for (int i = 0; i < paths.size(); i++) {
                bases.put(paths.get(i), Long.valueOf(((JsonNode) given.get("bases").get(i)).asLong()));
            }
            index = new NumberedFiles(session, paths, options, schema, known, partitions, partitioned, bases);
            partitioned = partitioned.add(given.get("base").asText(), DataTypes.LongType, false);
        }
        FileFormat format = given.get("extension").asText().equals("parquet")
            ? (FileFormat) new ParquetFileFormat() : (FileFormat) new OrcFileFormat();
        return new HadoopFsRelation(index, partitioned, schema, Option.empty(), format, options, session);
    }

    private static scala.collection.immutable.Seq columns(SparkSession session, JsonNode given) {
        List columns = new ArrayList();
        for (int i = 0; i < given.size(); i++) {
            JsonNode each = (JsonNode) given.get(i);
            columns.add(new Alias(
                session.expression(value(each)), each.get("name").asText(), NamedExpression$.MODULE$.newExprId(),
                NOTHING, Option.empty(), NOTHING));
        }
        return PythonUtils.toSeq(columns).toList();
    }

    private static Column stays(byte[] bits, String base, String position) {
        StructType schema = new StructType().add(WORDS, new ArrayType(DataTypes.LongType, false), false);
        int count = bits.length / Long.BYTES;
        List row = new ArrayList();
        row.add(new GenericInternalRow(new Object[] {
            UnsafeArrayData.fromPrimitiveArray(bits, Platform.BYTE_ARRAY_OFFSET, count, Long.BYTES)}));
        LocalRelation relation = new LocalRelation(
            DataTypeUtils.toAttributes(schema), PythonUtils.toSeq(row).toList(), false, Option.empty());
        Column words = ExpressionUtils.column(new ScalarSubquery(
            relation, NOTHING, NamedExpression$.MODULE$.newExprId(), NOTHING, Option.empty(), Option.empty(),
            Option.empty()));
        Column place = functions.col(base).plus(functions.col(position));
        Column word = functions.get(words, functions.shiftright(place, 6).cast("int"));
        Column bit = functions.getbit(word, place.bitwiseAND(functions.lit(Integer.valueOf(63))).cast("int"));
        return bit.equalTo(functions.lit(Integer.valueOf(0)));
    }

    private static Column value(JsonNode given) {
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
        return type.isNull() ? value : value.cast(DataType.fromJson(type.toString()));
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
