package dynamic_table;

import java.lang.reflect.Method;
import java.util.Set;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.classic.Dataset$;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.catalog.SupportsRead;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import org.apache.spark.sql.execution.datasources.v2.python.PythonDataSourceV2;
import org.apache.spark.sql.execution.datasources.v2.python.UserDefinedPythonDataSource;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * Relations of a Python data source that is planned for each scan. Spark keeps the plan of the first scan, with its
 * filters and its snapshot, and uses it for every other query of the same data frame or view.
 */
public final class FreshScans {
    /** A source without a plan that is registered already. */
    public static final class Source extends PythonDataSourceV2 {
        private final UserDefinedPythonDataSource registered;

        Source(String name, UserDefinedPythonDataSource registered) {
            this.registered = registered;
            setShortName(name);
        }

        public UserDefinedPythonDataSource source() {
            return registered;
        }
    }

    /** A table whose scans share nothing. */
    public static final class FreshTable implements Table, SupportsRead {
        private final Table given;
        private final UserDefinedPythonDataSource registered;

        FreshTable(Table given, UserDefinedPythonDataSource registered) {
            this.given = given;
            this.registered = registered;
        }

        public String name() {
            return given.name();
        }

        public StructType schema() {
            return given.schema();
        }

        public Set capabilities() {
            return given.capabilities();
        }

        public ScanBuilder newScanBuilder(CaseInsensitiveStringMap options) {
            Source source = new Source(given.name(), registered);
            Table table = source.getTable(given.schema(), new Transform[0], options.asCaseSensitiveMap());
            return ((SupportsRead) table).newScanBuilder(options);
        }
    }

    /** Return the rows of a relation that was loaded from a Python data source, planned for each scan. */
    public Dataset of(SparkSession session, Dataset loaded) throws ReflectiveOperationException {
        DataSourceV2Relation relation = (DataSourceV2Relation) loaded.queryExecution().analyzed();
        Table given = relation.table();
        FreshTable table = new FreshTable(
            given, session.sessionState().dataSourceManager().lookupDataSource(given.name()));
        return Dataset$.MODULE$.ofRows(session, (LogicalPlan) copied(relation, table));
    }

    /** Return a copy of the relation with another table. How many parts it has depends on the version of Spark. */
    private static Object copied(DataSourceV2Relation relation, Table table) throws ReflectiveOperationException {
        Object[] parts = new Object[relation.productArity()];
        for (int number = 1; number < parts.length; number++) {
            parts[number] = relation.productElement(number);
        }
        parts[0] = table;
        Method[] methods = DataSourceV2Relation.class.getMethods();
        for (int number = 0; number < methods.length; number++) {
            if (methods[number].getName().equals("copy") && methods[number].getParameterCount() == parts.length) {
                return methods[number].invoke(relation, parts);
            }
        }
        throw new NoSuchMethodException("copy of " + parts.length + " parts");
    }
}
