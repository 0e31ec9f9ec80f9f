import java.net.InetSocketAddress;
import org.apache.hadoop.hive.conf.HiveConf;
import org.apache.hadoop.hive.metastore.HiveMetaStore;
import org.apache.hadoop.hive.metastore.api.ThriftHiveMetastore;
import org.apache.hadoop.hive.metastore.txn.TxnDbUtil;
import org.apache.thrift.protocol.TBinaryProtocol;
import org.apache.thrift.server.TThreadPoolServer;
import org.apache.thrift.transport.TServerSocket;
import org.apache.thrift.transport.TTransportFactory;

/**
 * Hive's metastore over its own Derby database, on one loopback port; Hive's main listens on every interface.
 *
 * <p>LocalMetastore directory port
 */
public class LocalMetastore {
    /** Derby's SQL state for a table that already exists. */
    private static final String TABLE_EXISTS = "X0Y32";

    public static void main(String[] arguments) throws Exception {
        String directory = arguments[0];
        int port = Integer.parseInt(arguments[1]);
        HiveConf settings = new HiveConf();
        settings.set("javax.jdo.option.ConnectionURL", "jdbc:derby:;databaseName=" + directory + "/db;create=true");
        settings.set("javax.jdo.option.ConnectionDriverName", "org.apache.derby.jdbc.EmbeddedDriver");
        settings.set("hive.metastore.warehouse.dir", "file:" + directory + "/warehouse");
        settings.set("datanucleus.schema.autoCreateAll", "true");
        settings.set("hive.metastore.schema.verification", "false");
        settings.set("datanucleus.connectionPoolingType", "HikariCP");
        var handler = HiveMetaStore.newRetryingHMSHandler("local", settings, true);
        // DataNucleus creates its tables at the first request; the tables of locks are created separately.
        handler.get_all_databases();
        try {
            TxnDbUtil.prepDb(settings);
        } catch (java.sql.SQLException error) {
            if (!TABLE_EXISTS.equals(error.getSQLState())) {
                throw error;
            }
        }
        var server =
                new TThreadPoolServer(
                        new TThreadPoolServer.Args(new TServerSocket(new InetSocketAddress("127.0.0.1", port)))
                                .processor(new ThriftHiveMetastore.Processor<>(handler))
                                .protocolFactory(new TBinaryProtocol.Factory())
                                .transportFactory(new TTransportFactory())
                                .minWorkerThreads(2)
                                .maxWorkerThreads(64));
        server.serve();
    }
}
