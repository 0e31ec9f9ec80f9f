import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.paimon.append.AppendCompactCoordinator;
import org.apache.paimon.append.AppendCompactTask;
import org.apache.paimon.catalog.Catalog;
import org.apache.paimon.catalog.CatalogContext;
import org.apache.paimon.catalog.CatalogFactory;
import org.apache.paimon.catalog.Identifier;
import org.apache.paimon.data.GenericRow;
import org.apache.paimon.disk.IOManager;
import org.apache.paimon.manifest.BucketEntry;
import org.apache.paimon.operation.BaseAppendFileStoreWrite;
import org.apache.paimon.options.ExpireConfig;
import org.apache.paimon.options.Options;
import org.apache.paimon.predicate.PredicateBuilder;
import org.apache.paimon.schema.Schema;
import org.apache.paimon.schema.SchemaChange;
import org.apache.paimon.shade.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.paimon.shade.jackson2.com.fasterxml.jackson.databind.node.ArrayNode;
import org.apache.paimon.shade.jackson2.com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.paimon.table.BucketMode;
import org.apache.paimon.table.FileStoreTable;
import org.apache.paimon.table.sink.BatchTableCommit;
import org.apache.paimon.table.sink.BatchTableWrite;
import org.apache.paimon.table.sink.BatchWriteBuilder;
import org.apache.paimon.table.sink.CommitMessage;
import org.apache.paimon.table.source.ReadBuilder;
import org.apache.paimon.table.source.StreamTableScan;
import org.apache.paimon.types.DataField;
import org.apache.paimon.types.DataTypeJsonParser;
import org.apache.paimon.types.RowKind;
import org.apache.paimon.types.RowType;
import org.apache.paimon.utils.JsonSerdeUtil;

/** One command, which reads or changes one table. */
final class TableVerbs implements AutoCloseable {
    private final JsonNode command;
    private final Catalog catalog;
    private final Identifier table;

    TableVerbs(JsonNode command) {
        this.command = command;
        Options options = new Options();
        options.set("warehouse", command.get("warehouse").textValue());
        // No cache: others write to the tables between commands.
        options.set("cache-enabled", "false");
        if (command.has("catalog")) {
            texts("catalog").forEach(options::set);
        }
        this.catalog = CatalogFactory.createCatalog(CatalogContext.create(options));
        this.table = Identifier.fromString(command.get("table").textValue());
    }

    void carryOut(ObjectNode answer) throws Exception {
        switch (command.get("verb").textValue()) {
            case "create":
                create();
                break;
            case "write":
                write();
                break;
            case "read":
                answer.set("rows", read(answer.arrayNode()));
                break;
            case "stream":
                stream(answer);
                break;
            case "compact":
                compact();
                break;
            case "drop partitions":
                try (BatchTableCommit commit = load().newBatchWriteBuilder().newCommit()) {
                    commit.truncatePartitions(List.of(texts("partition")));
                }
                break;
            case "expire":
                int kept = command.get("retain_max").intValue();
                load().newExpireSnapshots()
                        .config(ExpireConfig.builder().snapshotRetainMin(1).snapshotRetainMax(kept).build())
                        .expire();
                break;
            case "tag":
                load().createTag(command.get("tag").textValue(), command.get("snapshot").longValue());
                break;
            case "alter":
                alter();
                break;
            default:
                throw new IllegalArgumentException("no such verb: " + command.get("verb"));
        }
    }

    /** Creates a table with the fields, keys and options of a schema file's JSON. */
    private void create() throws Exception {
        JsonNode schema = command.get("schema");
        List<DataField> fields = new ArrayList<>();
        schema.get("fields").forEach(field -> fields.add(DataTypeJsonParser.parseDataField(field)));
        catalog.createDatabase(table.getDatabaseName(), true);
        Map<String, String> options = texts(schema.get("options"));
        List<String> partitionKeys = names(schema.get("partitionKeys"));
        catalog.createTable(
                table, new Schema(fields, partitionKeys, names(schema.get("primaryKeys")), options, null), false);
    }

    /** Commits rows, each with its kind; with "overwrite", they replace that partition. */
    private void write() throws Exception {
        FileStoreTable target = load();
        BatchWriteBuilder builder = target.newBatchWriteBuilder();
        if (command.has("overwrite")) {
            builder = builder.withOverwrite(texts("overwrite"));
        }
        try (IOManager disk = scratch();
                BatchTableWrite write = builder.newWrite();
                BatchTableCommit commit = builder.newCommit()) {
            write.withIOManager(disk);
            boolean isDynamic = target.coreOptions().bucket() == -1 && !target.primaryKeys().isEmpty();
            DynamicBuckets buckets =
                    isDynamic ? new DynamicBuckets(target, write, disk, command.has("overwrite")) : null;
            JsonNode kinds = command.get("kinds");
            int position = 0;
            for (JsonNode values : command.get("rows")) {
                GenericRow row = RowJson.toRow(values, target.rowType());
                row.setRowKind(RowKind.fromByteValue((byte) kinds.get(position++).intValue()));
                if (isDynamic) {
                    buckets.write(row);
                } else {
                    write.write(row);
                }
            }
            commit.commit(write.prepareCommit());
            if (isDynamic) {
                buckets.close();
            }
        }
    }

    /** Returns all rows of the table; "options" (scan.snapshot-id, scan.tag-name, ...) override the table's. */
    private ArrayNode read(ArrayNode rows) throws Exception {
        FileStoreTable source = load();
        RowType type = source.rowType();
        ReadBuilder builder = source.newReadBuilder();
        if (command.has("equal")) {
            PredicateBuilder predicates = new PredicateBuilder(type);
            int column = predicates.indexOf(command.get("equal").get(0).textValue());
            Object value = RowJson.toValue(command.get("equal").get(1), type.getTypeAt(column));
            builder.withFilter(predicates.equal(column, value));
        }
        try (IOManager disk = scratch()) {
            builder.newRead()
                    .executeFilter()
                    .withIOManager(disk)
                    .createReader(builder.newScan().plan())
                    .forEachRemaining(row -> rows.add(RowJson.fromRow(row, type)));
        }
        return rows;
    }

    /** Answers with the changes that a stream reads from the first snapshot to the newest one, each with its kind. */
    private void stream(ObjectNode answer) throws Exception {
        ArrayNode rows = answer.putArray("rows");
        ArrayNode kinds = answer.putArray("kinds");
        FileStoreTable source = load().copy(Map.of("scan.snapshot-id", "1"));
        Long newest = source.snapshotManager().latestSnapshotId();
        if (newest == null) {
            return;
        }
        RowType type = source.rowType();
        ReadBuilder builder = source.newReadBuilder();
        StreamTableScan scan = builder.newStreamScan();
        try (IOManager disk = scratch()) {
            while (scan.checkpoint() == null || scan.checkpoint() <= newest) {
                builder.newRead()
                        .withIOManager(disk)
                        .createReader(scan.plan())
                        .forEachRemaining(
                                row -> {
                                    rows.add(RowJson.fromRow(row, type));
                                    kinds.add(row.getRowKind().toByteValue());
                                });
            }
        }
    }

    /** Runs a full compaction of every bucket. */
    private void compact() throws Exception {
        // This command is the dedicated compaction job of tables with write-only.
        FileStoreTable target = load().copy(Map.of("write-only", "false"));
        if (target.bucketMode() == BucketMode.BUCKET_UNAWARE) {
            join(target);
            return;
        }
        BatchWriteBuilder builder = target.newBatchWriteBuilder();
        try (IOManager disk = scratch();
                BatchTableWrite write = builder.newWrite();
                BatchTableCommit commit = builder.newCommit()) {
            write.withIOManager(disk);
            for (BucketEntry bucket : target.newSnapshotReader().bucketEntries()) {
                write.compact(bucket.partition(), bucket.bucket(), true);
            }
            commit.commit(write.prepareCommit());
        }
    }

    private static void join(FileStoreTable target) throws Exception {
        List<CommitMessage> messages = new ArrayList<>();
        BaseAppendFileStoreWrite write = (BaseAppendFileStoreWrite) target.store().newWrite("tests");
        try (BatchTableCommit commit = target.newBatchWriteBuilder().newCommit()) {
            for (AppendCompactTask task : new AppendCompactCoordinator(target, false).run()) {
                messages.add(task.doCompact(target, write));
            }
            commit.commit(messages);
        } finally {
            write.close();
        }
    }

    private void alter() throws Exception {
        List<SchemaChange> changes = new ArrayList<>();
        for (JsonNode change : command.get("changes")) {
            changes.add(JsonSerdeUtil.fromJson(change.toString(), SchemaChange.class));
        }
        catalog.alterTable(table, changes, false);
    }

    private FileStoreTable load() throws Exception {
        FileStoreTable loaded = (FileStoreTable) catalog.getTable(table);
        return command.has("options") ? loaded.copy(texts("options")) : loaded;
    }

    private static IOManager scratch() {
        return IOManager.create(System.getProperty("java.io.tmpdir"));
    }

    private Map<String, String> texts(String name) {
        return texts(command.get(name));
    }

    private static Map<String, String> texts(JsonNode object) {
        Map<String, String> texts = new HashMap<>();
        object.fields().forEachRemaining(entry -> texts.put(entry.getKey(), entry.getValue().textValue()));
        return texts;
    }

    private static List<String> names(JsonNode array) {
        List<String> names = new ArrayList<>();
        array.forEach(name -> names.add(name.textValue()));
        return names;
    }

    @Override
    public void close() throws Exception {
        catalog.close();
    }
}
