import java.net.InetSocketAddress;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.iceberg.jdbc.JdbcCatalog;
import org.apache.iceberg.rest.RESTCatalogAdapter;
import org.apache.iceberg.rest.RESTCatalogServlet;
import org.eclipse.jetty.ee10.servlet.ServletContextHandler;
import org.eclipse.jetty.ee10.servlet.ServletHolder;
import org.eclipse.jetty.server.Server;

/**
 * The REST catalog of Iceberg's own tests over a SQLite file, on one loopback port; its main listens on every
 * interface.
 *
 * <p>LocalIcebergRest directory port
 */
public class LocalIcebergRest {
    public static void main(String[] arguments) throws Exception {
        String directory = arguments[0];
        var catalog = new JdbcCatalog();
        catalog.setConf(new Configuration());
        catalog.initialize(
                "local",
                Map.of(
                        "uri", "jdbc:sqlite:" + directory + "/catalog.db",
                        "jdbc.schema-version", "V1",
                        "warehouse", "file:" + directory + "/warehouse"));
        var handler = new ServletContextHandler();
        handler.addServlet(new ServletHolder(new RESTCatalogServlet(new RESTCatalogAdapter(catalog))), "/*");
        var server = new Server(new InetSocketAddress("127.0.0.1", Integer.parseInt(arguments[1])));
        server.setHandler(handler);
        server.start();
        server.join();
    }
}
