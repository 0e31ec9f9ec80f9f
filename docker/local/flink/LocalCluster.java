import java.util.concurrent.CompletableFuture;
import java.util.stream.Stream;
import org.apache.flink.api.common.JobID;
import org.apache.flink.api.common.RuntimeExecutionMode;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.core.execution.JobClient;
import org.apache.flink.core.execution.PipelineExecutor;
import org.apache.flink.core.execution.PipelineExecutorFactory;
import org.apache.flink.core.execution.PipelineExecutorServiceLoader;
import org.apache.flink.runtime.jobgraph.JobGraph;
import org.apache.flink.runtime.minicluster.MiniCluster;
import org.apache.flink.runtime.minicluster.MiniClusterConfiguration;
import org.apache.flink.runtime.minicluster.MiniClusterJobClient;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.graph.StreamGraph;
import org.apache.flink.table.api.EnvironmentSettings;
import org.apache.flink.table.api.bridge.java.StreamTableEnvironment;

/** Flink cluster inside this JVM, on the loopback interface, and environments whose jobs run on it. */
final class LocalCluster implements AutoCloseable, PipelineExecutorServiceLoader, PipelineExecutorFactory {
    private static final String NAME = "in-this-jvm";
    private static final int SLOTS = 2;

    private final MiniCluster cluster;

    LocalCluster() throws Exception {
        Configuration settings = new Configuration();
        settings.setString("rest.port", "0");
        settings.setString("rest.address", "127.0.0.1");
        settings.setString("rest.bind-address", "127.0.0.1");
        settings.setString("jobmanager.bind-host", "127.0.0.1");
        settings.setString("taskmanager.host", "127.0.0.1");
        settings.setString("taskmanager.bind-host", "127.0.0.1");
        settings.setString("web.submit.enable", "false");
        settings.setString("taskmanager.memory.network.min", "16mb");
        settings.setString("taskmanager.memory.network.max", "16mb");
        settings.setString("taskmanager.memory.managed.size", "64mb");
        cluster = new MiniCluster(
                new MiniClusterConfiguration.Builder()
                        .setConfiguration(settings)
                        .setCommonBindAddress("127.0.0.1")
                        .setNumTaskManagers(1)
                        .setNumSlotsPerTaskManager(SLOTS)
                        .build());
        cluster.start();
    }

    /** Returns an environment for jobs, with one subtask per operator, so that rows stay in order. */
    StreamExecutionEnvironment jobs(boolean isStreaming) {
        Configuration settings = new Configuration();
        settings.setString("execution.target", NAME);
        settings.setString("execution.attached", "true");
        settings.setString("parallelism.default", "1");
        // The failure of a job is the answer, so do not restart it.
        settings.setString("restart-strategy.type", "none");
        if (isStreaming) {
            settings.setString("execution.checkpointing.interval", "50ms");
        }
        ClassLoader loader = Thread.currentThread().getContextClassLoader();
        StreamExecutionEnvironment jobs = new StreamExecutionEnvironment(this, settings, loader);
        jobs.setRuntimeMode(isStreaming ? RuntimeExecutionMode.STREAMING : RuntimeExecutionMode.BATCH);
        return jobs;
    }

    /** Returns the SQL environment for these jobs. */
    static StreamTableEnvironment tables(StreamExecutionEnvironment jobs, boolean isStreaming) {
        Configuration settings = new Configuration();
        // Statements and procedures return when their job has ended.
        settings.setString("table.dml-sync", "true");
        settings.setString("table.local-time-zone", "UTC");
        // Write the rows of a test in the given order.
        settings.setString("table.exec.sink.upsert-materialize", "NONE");
        EnvironmentSettings.Builder mode = EnvironmentSettings.newInstance();
        mode = isStreaming ? mode.inStreamingMode() : mode.inBatchMode();
        return StreamTableEnvironment.create(jobs, mode.withConfiguration(settings).build());
    }

    /** Fails if the job has ended, with its reason. */
    void requireRunning(JobID job) throws Exception {
        if (cluster.getJobStatus(job).get().isGloballyTerminalState()) {
            cluster.requestJobResult(job).get().toJobExecutionResult(LocalCluster.class.getClassLoader());
            throw new IllegalStateException("the streaming job ended by itself");
        }
    }

    /** Cancels a job, and waits for its end. */
    void cancel(JobID job) throws Exception {
        cluster.cancelJob(job).get();
        cluster.requestJobResult(job).get();
    }

    @Override
    public PipelineExecutorFactory getExecutorFactory(Configuration settings) {
        return this;
    }

    @Override
    public Stream<String> getExecutorNames() {
        return Stream.of(NAME);
    }

    @Override
    public String getName() {
        return NAME;
    }

    @Override
    public boolean isCompatibleWith(Configuration settings) {
        return true;
    }

    @Override
    public PipelineExecutor getExecutor(Configuration settings) {
        return (pipeline, of, loader) -> {
            JobGraph job = ((StreamGraph) pipeline).getJobGraph(loader, null);
            CompletableFuture<JobClient> client = cluster.submitJob(job)
                    .thenApply(done -> new MiniClusterJobClient(
                            job.getJobID(), cluster, loader, MiniClusterJobClient.JobFinalizationBehavior.NOTHING));
            return client;
        };
    }

    @Override
    public void close() throws Exception {
        cluster.close();
    }
}
