package dynamic_table;

import org.apache.spark.sql.catalyst.TableIdentifier;
import org.apache.spark.sql.catalyst.catalog.SessionCatalog;
import org.apache.spark.sql.catalyst.catalog.TemporaryViewRelation;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.command.ViewHelper$;
import scala.Option;
import scala.collection.immutable.Nil$;
import scala.runtime.AbstractFunction1;

/** Temporary views for one statement, under names that nobody else uses. */
public final class TemporaryViews {
    private static final class NoOtherView extends AbstractFunction1 {
        public Object apply(Object name) {
            return Option.empty();
        }
    }

    /** Create a view as Dataset.createTempView does, but not as a command, which Spark plans, executes and reports. */
    public void create(SparkSession session, String name, Dataset rows) {
        LogicalPlan plan = rows.queryExecution().analyzed();
        TemporaryViewRelation view = ViewHelper$.MODULE$.createTemporaryViewRelation(
            new TableIdentifier(name), session, false, new NoOtherView(), Option.empty(), plan, plan,
            (scala.collection.immutable.Seq) (Object) Nil$.MODULE$, Option.empty());
        session.sessionState().catalog().createTempView(name, view, false);
    }

    /** Drop views by their names, which commas separate. */
    public void drop(SparkSession session, String names) {
        SessionCatalog catalog = session.sessionState().catalog();
        String[] each = names.split(",");
        for (int i = 0; i < each.length; i++) {
            catalog.dropTempView(each[i]);
        }
    }
}
