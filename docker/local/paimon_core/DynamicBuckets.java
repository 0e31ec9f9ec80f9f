import java.util.function.BiConsumer;
import org.apache.paimon.CoreOptions;
import org.apache.paimon.crosspartition.GlobalIndexAssigner;
import org.apache.paimon.crosspartition.IndexBootstrap;
import org.apache.paimon.data.GenericRow;
import org.apache.paimon.data.InternalRow;
import org.apache.paimon.disk.IOManager;
import org.apache.paimon.index.BucketAssigner;
import org.apache.paimon.index.HashBucketAssigner;
import org.apache.paimon.index.SimpleHashBucketAssigner;
import org.apache.paimon.table.FileStoreTable;
import org.apache.paimon.table.sink.BatchTableWrite;
import org.apache.paimon.table.sink.RowPartitionKeyExtractor;

/** Finds the buckets of rows as Paimon's Flink and Spark writers do, with one assigner. */
final class DynamicBuckets implements AutoCloseable {
    private final BatchTableWrite write;
    private final RowPartitionKeyExtractor keys;
    private final BucketAssigner byHash;
    private final GlobalIndexAssigner byKey;

    DynamicBuckets(FileStoreTable target, BatchTableWrite write, IOManager disk, boolean overwrites) throws Exception {
        this.write = write;
        this.keys = new RowPartitionKeyExtractor(target.schema());
        if (target.schema().crossPartitionUpdate()) {
            byHash = null;
            byKey = new GlobalIndexAssigner(target);
            BiConsumer<InternalRow, Integer> sink = (row, bucket) -> put(row, bucket);
            byKey.open(0, disk, 1, 0, sink);
            if (!overwrites) {
                IndexBootstrap bootstrap = new IndexBootstrap(target);
                bootstrap.bootstrap(1, 0, row -> known(row));
            }
            byKey.endBoostrap(false);
            return;
        }
        byKey = null;
        CoreOptions options = target.coreOptions();
        long keysWanted = options.dynamicBucketTargetRowNum();
        int most = options.dynamicBucketMaxBuckets();
        byHash = overwrites
                ? new SimpleHashBucketAssigner(1, 0, keysWanted, most)
                : new HashBucketAssigner(
                        target.snapshotManager(),
                        "tests",
                        target.store().newIndexFileHandler(),
                        1,
                        1,
                        0,
                        keysWanted,
                        most);
    }

    void write(GenericRow row) throws Exception {
        if (byKey != null) {
            byKey.processInput(row);
        } else {
            write.write(row, byHash.assign(keys.partition(row), keys.trimmedPrimaryKey(row).hashCode()));
        }
    }

    private void put(InternalRow row, int bucket) {
        try {
            write.write(row, bucket);
        } catch (Exception problem) {
            throw new IllegalStateException(problem);
        }
    }

    private void known(InternalRow row) {
        try {
            byKey.bootstrapKey(row);
        } catch (Exception problem) {
            throw new IllegalStateException(problem);
        }
    }

    @Override
    public void close() throws Exception {
        if (byKey != null) {
            byKey.close();
        }
    }
}
