import java.io.UncheckedIOException;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.stream.Collectors;
import org.apache.flink.api.common.JobExecutionResult;
import org.apache.flink.api.common.JobID;
import org.apache.flink.core.execution.JobClient;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.sink.v2.DiscardingSink;
import org.apache.flink.table.api.Table;
import org.apache.flink.table.api.TableResult;
import org.apache.flink.table.api.bridge.java.StreamTableEnvironment;
import org.apache.flink.table.data.RowData;
import org.apache.flink.table.data.conversion.DataStructureConverter;
import org.apache.flink.table.data.conversion.DataStructureConverters;
import org.apache.flink.table.runtime.typeutils.ExternalTypeInfo;
import org.apache.flink.table.types.DataType;
import org.apache.flink.types.Row;
import org.apache.flink.types.RowKind;
import org.apache.flink.util.CloseableIterator;
import org.apache.paimon.consumer.Consumer;
import org.apache.paimon.consumer.ConsumerManager;
import org.apache.paimon.flink.FlinkRowData;
import org.apache.paimon.flink.FlinkRowWrapper;
import org.apache.paimon.flink.LogicalTypeConversion;
import org.apache.paimon.shade.jackson2.com.fasterxml.jackson.core.JsonProcessingException;
import org.apache.paimon.shade.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.paimon.shade.jackson2.com.fasterxml.jackson.databind.node.ArrayNode;
import org.apache.paimon.shade.jackson2.com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.paimon.table.FileStoreTable;
import org.apache.paimon.types.RowType;

/** One command: SQL that Flink runs against the tables of one warehouse. */
final class FlinkVerbs {
    private static final int CONSUMED_POLL_MILLIS = 5;

    private final LocalCluster cluster;
    private final JsonNode command;
    private final StreamTableEnvironment sql;
    private final StreamExecutionEnvironment jobs;

    FlinkVerbs(LocalCluster cluster, JsonNode command) {
        this.cluster = cluster;
        this.command = command;
        boolean isStreaming = command.path("streaming").booleanValue();
        this.jobs = cluster.jobs(isStreaming);
        this.sql = LocalCluster.tables(jobs, isStreaming);
        // No cache: others write to the tables between commands.
        sql.executeSql("CREATE CATALOG paimon WITH ('type' = 'paimon', 'cache-enabled' = 'false', 'warehouse' = "
                + text("file:" + command.get("warehouse").textValue()) + ")");
        sql.useCatalog("paimon");
    }

    void carryOut(ObjectNode answer) throws Exception {
        switch (command.get("verb").textValue()) {
            case "execute":
                execute(answer);
                break;
            case "query":
                query(answer);
                break;
            case "write":
                write();
                break;
            case "stream":
                stream(answer);
                break;
            case "begin":
                begin(answer);
                break;
            case "check":
                cluster.requireRunning(job());
                break;
            case "end":
                cluster.cancel(job());
                break;
            default:
                throw new IllegalArgumentException("no such verb: " + command.get("verb"));
        }
    }

    /** Runs statements in order; the answer contains the result of the last one, as text. */
    private void execute(ObjectNode answer) throws Exception {
        TableResult result = null;
        for (JsonNode statement : command.get("statements")) {
            result = sql.executeSql(statement.textValue());
            result.await();
        }
        ArrayNode rows = answer.putArray("rows");
        try (CloseableIterator<Row> found = result.collect()) {
            while (found.hasNext()) {
                rows.add(found.next().toString());
            }
        }
    }

    /** Runs statements in order; the last one is a streaming INSERT, which runs until "end". The answer has its id. */
    private void begin(ObjectNode answer) throws Exception {
        jobs.setParallelism(command.get("parallelism").intValue());
        jobs.enableCheckpointing(command.get("checkpoint_millis").longValue());
        sql.getConfig().set("table.dml-sync", "false");
        TableResult result = null;
        for (JsonNode statement : command.get("statements")) {
            result = sql.executeSql(statement.textValue());
        }
        answer.put("job", result.getJobClient().orElseThrow().getJobID().toHexString());
    }

    private JobID job() {
        return JobID.fromHexString(command.get("job").textValue());
    }

    /** Runs a query in batch mode; the answer has all rows. */
    private void query(ObjectNode answer) throws Exception {
        Table table = sql.sqlQuery(command.get("statement").textValue());
        try (PassingRows rows = new PassingRows()) {
            DataType type = table.getResolvedSchema().toPhysicalRowDataType();
            sql.toDataStream(table).map(rows).returns(ExternalTypeInfo.of(type)).sinkTo(new DiscardingSink<>());
            jobs.execute();
            put(rows.soFar(), type, answer);
        }
    }

    /**
     * Answers with the changes of a streaming query, until the table's snapshots up to "through" have been consumed. A
     * checkpoint stores the next snapshot in the consumer's file, after all rows of earlier snapshots have passed.
     */
    private void stream(ObjectNode answer) throws Exception {
        String name = "tests-" + UUID.randomUUID();
        FileStoreTable source = load();
        ConsumerManager consumers = new ConsumerManager(source.fileIO(), source.location());
        Map<String, String> options = new LinkedHashMap<>(texts("options"));
        options.put("consumer-id", name);
        options.put("consumer.expiration-time", "1 h");
        options.put("continuous.discovery-interval", "5 ms");
        Table table = sql.sqlQuery("SELECT * FROM " + path() + hint(options));
        DataType type = table.getResolvedSchema().toPhysicalRowDataType();
        try (PassingRows rows = new PassingRows()) {
            sql.toChangelogStream(table).map(rows).returns(ExternalTypeInfo.of(type)).sinkTo(new DiscardingSink<>());
            JobClient job = jobs.executeAsync();
            try {
                awaitConsumed(job, consumers, name);
                put(rows.soFar(), type, answer);
            } finally {
                job.cancel().handle((done, problem) -> null).get();
                job.getJobExecutionResult().handle((done, problem) -> null).get();
                consumers.deleteConsumer(name);
            }
        }
    }

    private void awaitConsumed(JobClient job, ConsumerManager consumers, String name) throws Exception {
        long through = command.get("through").longValue();
        long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(command.get("seconds_max").longValue());
        CompletableFuture<JobExecutionResult> ended = job.getJobExecutionResult();
        Optional<Long> next = Optional.empty();
        while (next.map(each -> each <= through).orElse(true)) {
            if (System.nanoTime() > end) {
                throw new TimeoutException("snapshot " + through + " has not been consumed: "
                        + next.map(each -> each + " is next").orElse("none has"));
            }
            try {
                ended.get(CONSUMED_POLL_MILLIS, TimeUnit.MILLISECONDS);
                throw new IllegalStateException("the streaming job ended by itself");
            } catch (TimeoutException stillRunning) {
                next = nextSnapshot(consumers, name, next);
            }
        }
    }

    /** Returns the content of the consumer's file; the job overwrites it in place, so a reader may find it empty. */
    private static Optional<Long> nextSnapshot(ConsumerManager consumers, String name, Optional<Long> before) {
        try {
            return consumers.consumer(name).map(Consumer::nextSnapshot);
        } catch (UncheckedIOException problem) {
            if (problem.getCause() instanceof JsonProcessingException) {
                return before;
            }
            throw problem;
        }
    }

    /** Inserts rows, in streaming mode each with its kind; with "overwrite", runs INSERT OVERWRITE. */
    private void write() throws Exception {
        RowType rowType = load().rowType();
        DataType type = typeOf(rowType);
        DataStructureConverter<Object, Object> converter = converter(type);
        List<Row> rows = new ArrayList<>();
        JsonNode kinds = command.get("kinds");
        for (JsonNode values : command.get("rows")) {
            Row row = (Row) converter.toExternalOrNull(new FlinkRowData(RowJson.toRow(values, rowType)));
            row.setKind(RowKind.fromByteValue((byte) kinds.get(rows.size()).intValue()));
            rows.add(row);
        }
        DataStream<Row> changes = jobs.fromData(rows, ExternalTypeInfo.<Row>of(type));
        boolean isStreaming = command.path("streaming").booleanValue();
        Table table = isStreaming ? sql.fromChangelogStream(changes) : sql.fromDataStream(changes);
        sql.createTemporaryView("rows_of_the_test", table);
        String insert = command.path("overwrite").booleanValue() ? "INSERT OVERWRITE " : "INSERT INTO ";
        sql.executeSql(insert + path() + hint(texts("options")) + " SELECT * FROM rows_of_the_test").await();
    }

    private static DataType typeOf(RowType type) {
        return org.apache.flink.table.types.utils.TypeConversions.fromLogicalToDataType(
                LogicalTypeConversion.toLogicalType(type));
    }

    private static DataStructureConverter<Object, Object> converter(DataType type) {
        DataStructureConverter<Object, Object> converter = DataStructureConverters.getConverter(type);
        converter.open(Thread.currentThread().getContextClassLoader());
        return converter;
    }

    private static void put(List<Row> rows, DataType type, ObjectNode answer) {
        DataStructureConverter<Object, Object> converter = converter(type);
        RowType rowType = (RowType) LogicalTypeConversion.toDataType(type.getLogicalType());
        ArrayNode values = answer.putArray("rows");
        ArrayNode kinds = answer.putArray("kinds");
        for (Row row : rows) {
            RowData internal = (RowData) converter.toInternalOrNull(row);
            values.add(RowJson.fromRow(new FlinkRowWrapper(internal), rowType));
            kinds.add((int) row.getKind().toByteValue());
        }
    }

    private FileStoreTable load() throws Exception {
        String[] names = command.get("table").textValue().split("\\.");
        return (FileStoreTable) ((org.apache.paimon.flink.FlinkCatalog) sql.getCatalog("paimon").get())
                .catalog()
                .getTable(org.apache.paimon.catalog.Identifier.create(names[0], names[1]));
    }

    private String path() {
        String[] names = command.get("table").textValue().split("\\.");
        return "`" + names[0] + "`.`" + names[1] + "`";
    }

    private static String hint(Map<String, String> options) {
        return options.isEmpty()
                ? ""
                : options.entrySet().stream()
                        .map(each -> text(each.getKey()) + " = " + text(each.getValue()))
                        .collect(Collectors.joining(", ", " /*+ OPTIONS(", ") */"));
    }

    private static String text(String value) {
        return "'" + value.replace("'", "''") + "'";
    }

    private Map<String, String> texts(String name) {
        Map<String, String> texts = new LinkedHashMap<>();
        command.path(name).fields().forEachRemaining(each -> texts.put(each.getKey(), each.getValue().textValue()));
        return texts;
    }
}
