import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import org.apache.flink.api.common.functions.MapFunction;
import org.apache.flink.types.Row;

/** Keeps every row that passes through it in a job on this JVM's cluster. */
final class PassingRows implements MapFunction<Row, Row>, AutoCloseable {
    private static final long serialVersionUID = 1L;
    private static final Map<String, List<Row>> KEPT = new ConcurrentHashMap<>();

    private final String name = UUID.randomUUID().toString();

    PassingRows() {
        KEPT.put(name, new CopyOnWriteArrayList<>());
    }

    @Override
    public Row map(Row row) {
        KEPT.get(name).add(Row.copy(row));
        return row;
    }

    List<Row> soFar() {
        return KEPT.get(name);
    }

    @Override
    public void close() {
        KEPT.remove(name);
    }
}
