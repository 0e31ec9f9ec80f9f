package dynamic_table;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.spark.api.python.PythonUtils;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.Coalesce;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.Literal$;
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateExpression;
import org.apache.spark.sql.catalyst.expressions.aggregate.Complete$;
import org.apache.spark.sql.catalyst.expressions.aggregate.Count;
import org.apache.spark.sql.catalyst.expressions.aggregate.Max;
import org.apache.spark.sql.catalyst.expressions.aggregate.Min;
import org.apache.spark.sql.catalyst.expressions.aggregate.Sum;
import org.apache.spark.sql.catalyst.plans.QueryPlan;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LocalRelation;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.classic.Dataset$;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import scala.Function1;
import scala.Option;
import scala.collection.Seq;
import scala.runtime.AbstractPartialFunction;

/** Aggregates of an optimised plan that totals of partitions answer, and the plan with these totals instead of files. */
public final class MetadataAggregates {
    private static final String COUNT = "count";
    private static final String TOTAL = "total";
    private static final String MIN = "min ";
    private static final String MAX = "max ";
    private static final String PARTITION = "partition ";
    /** Nodes of optimised plans that Spark analyses again as they are. */
    private static final List NODES = Arrays.asList(new String[] {
        "Aggregate", "Filter", "GlobalLimit", "Join", "LocalLimit", "LocalRelation", "Offset", "OneRowRelation",
        "Project", "Sort", "Union", "Window"});

    /** An aggregate directly above a relation, but for filters and projections of columns. */
    private static final class Place {
        Aggregate aggregate;
        LogicalRelation relation;
        String number;
        final List filters = new ArrayList();
        /** Columns as in the table, where the case of their letters may differ from the query's. */
        final Set plain = new HashSet();
        final Set counted = new HashSet();
        final Set bounded = new HashSet();

        boolean isTotal() {
            return filters.isEmpty() && aggregate.groupingExpressions().isEmpty();
        }

        /** Return a column's name in the table; references to it have the query's spelling. */
        String nameOf(Attribute column) {
            Seq columns = relation.output();
            for (int i = 0; i < columns.size(); i++) {
                Attribute each = (Attribute) columns.apply(i);
                if (each.exprId().equals(column.exprId())) {
                    return each.name();
                }
            }
            throw new IllegalArgumentException("no column of the table: " + column);
        }

        void addNames(Expression expression) {
            Seq attributes = expression.references().toSeq();
            for (int i = 0; i < attributes.size(); i++) {
                plain.add(nameOf((Attribute) attributes.apply(i)));
            }
        }
    }

    /**
     * Return an object for each table by its number: "plain" are columns of groups and conditions, "counted" those
     * whose values are counted, "bounded" those whose bounds are needed, "isTotal" whether there is only one group.
     * Return null if the plan reads a table in any other way.
     */
    public String find(LogicalPlan plan, String option) {
        List places = new ArrayList();
        if (!addPlaces(plan, option, places) || places.isEmpty()) {
            return null;
        }
        ObjectNode found = JsonNodeFactory.instance.objectNode();
        for (int i = 0; i < places.size(); i++) {
            Place place = (Place) places.get(i);
            ObjectNode table = (ObjectNode) found.get(place.number);
            if (table == null) {
                table = found.putObject(place.number);
                table.put("isTotal", true);
                table.putArray("plain");
                table.putArray("counted");
                table.putArray("bounded");
            }
            if (!place.isTotal()) {
                table.put("isTotal", false);
            }
            addAll((ArrayNode) table.get("plain"), place.plain);
            addAll((ArrayNode) table.get("counted"), place.counted);
            addAll((ArrayNode) table.get("bounded"), place.bounded);
        }
        return found.toString();
    }

    private static void addAll(ArrayNode to, Set names) {
        java.util.Iterator each = names.iterator();
        while (each.hasNext()) {
            to.add((String) each.next());
        }
    }

    private static boolean addPlaces(QueryPlan node, String option, List places) {
        if (!NODES.contains(node.getClass().getSimpleName())) {
            return false;
        }
        Place place = place(node, option);
        if (place != null) {
            places.add(place);
            for (int i = 0; i < place.filters.size(); i++) {
                if (!addAllPlaces(((QueryPlan) place.filters.get(i)).subqueries(), option, places)) {
                    return false;
                }
            }
            return addAllPlaces(node.subqueries(), option, places);
        }
        return addAllPlaces(node.children(), option, places) && addAllPlaces(node.subqueries(), option, places);
    }

    private static boolean addAllPlaces(Seq nodes, String option, List places) {
        for (int i = 0; i < nodes.size(); i++) {
            if (!addPlaces((QueryPlan) nodes.apply(i), option, places)) {
                return false;
            }
        }
        return true;
    }

    private static String number(QueryPlan node, String option) {
        if (!(node instanceof LogicalRelation) || !(((LogicalRelation) node).relation() instanceof HadoopFsRelation)) {
            return null;
        }
        Option number = ((HadoopFsRelation) ((LogicalRelation) node).relation()).options().get(option);
        return number.isDefined() ? (String) number.get() : null;
    }

    private static Place place(QueryPlan node, String option) {
        if (!(node instanceof Aggregate)) {
            return null;
        }
        Place place = new Place();
        place.aggregate = (Aggregate) node;
        QueryPlan below = place.aggregate.child();
        while (below instanceof Filter || (below instanceof Project && areColumns(((Project) below).projectList()))) {
            if (below instanceof Filter) {
                if (!((Filter) below).condition().deterministic()) {
                    return null;
                }
                place.filters.add(below);
            }
            below = (QueryPlan) below.children().apply(0);
        }
        place.number = number(below, option);
        if (place.number == null || !areColumns(place.aggregate.groupingExpressions())) {
            return null;
        }
        place.relation = (LogicalRelation) below;
        for (int i = 0; i < place.filters.size(); i++) {
            place.addNames(((Filter) place.filters.get(i)).condition());
        }
        for (int i = 0; i < place.aggregate.groupingExpressions().size(); i++) {
            place.addNames((Expression) place.aggregate.groupingExpressions().apply(i));
        }
        for (int i = 0; i < place.aggregate.aggregateExpressions().size(); i++) {
            if (!addAggregates((Expression) place.aggregate.aggregateExpressions().apply(i), place)) {
                return null;
            }
        }
        return place;
    }

    private static boolean areColumns(Seq expressions) {
        for (int i = 0; i < expressions.size(); i++) {
            if (!(expressions.apply(i) instanceof AttributeReference)) {
                return false;
            }
        }
        return true;
    }

    private static boolean addAggregates(Expression expression, Place place) {
        if (!(expression instanceof AggregateExpression)) {
            for (int i = 0; i < expression.children().size(); i++) {
                if (!addAggregates((Expression) expression.children().apply(i), place)) {
                    return false;
                }
            }
            return true;
        }
        AggregateExpression aggregate = (AggregateExpression) expression;
        if (aggregate.isDistinct() || aggregate.filter().isDefined() || aggregate.mode() != Complete$.MODULE$) {
            return false;
        }
        Seq of = ((Expression) (Object) aggregate.aggregateFunction()).children();
        Object function = aggregate.aggregateFunction();
        if (function instanceof Count) {
            for (int i = 0; i < of.size(); i++) {
                if (of.apply(i) instanceof AttributeReference) {
                    place.counted.add(place.nameOf((Attribute) of.apply(i)));
                } else if (!(of.apply(i) instanceof Literal) || ((Literal) of.apply(i)).value() == null) {
                    return false;
                }
            }
            return true;
        }
        if (!(function instanceof Min || function instanceof Max) || !(of.apply(0) instanceof AttributeReference)) {
            return false;
        }
        place.bounded.add(place.nameOf((Attribute) of.apply(0)));
        return true;
    }

    /**
     * Return the plan with totals instead of relations. The totals of a table, by its number, have one row for each
     * partition with the columns "partition p", "count", "min c" and "max c". If all aggregates of the table have one
     * group, they are one row with "total" instead of "count".
     */
    public Dataset answer(SparkSession session, LogicalPlan plan, String option, Map totals, List names) {
        Replacement replacement = new Replacement(option, totals);
        LogicalPlan answered = (LogicalPlan) plan.transformUpWithSubqueries(replacement);
        answered = (LogicalPlan) answered.transformAllExpressionsWithSubqueries(new NotNull(replacement.notNull));
        Dataset rows = Dataset$.MODULE$.ofRows(session, answered);
        // The optimiser may change the case of a name.
        return rows.toDF(seq(names));
    }

    /** Replaces an aggregate over a relation by one over its totals. */
    private static final class Replacement extends AbstractPartialFunction {
        final Set notNull = new HashSet();
        private final String option;
        private final Map totals;

        Replacement(String option, Map totals) {
            this.option = option;
            this.totals = totals;
        }

        public boolean isDefinedAt(Object node) {
            return place((QueryPlan) node, option) != null;
        }

        public Object applyOrElse(Object node, Function1 otherwise) {
            Place place = place((QueryPlan) node, option);
            return place == null ? otherwise.apply(node) : replaced(place);
        }

        private LogicalPlan replaced(Place place) {
            Dataset rows = (Dataset) totals.get(place.number);
            Seq columns = rows.queryExecution().analyzed().output();
            List output = new ArrayList();
            Map byName = new HashMap();
            for (int i = 0; i < columns.size(); i++) {
                Attribute column = (Attribute) columns.apply(i);
                Attribute ours = column.name().startsWith(PARTITION)
                    ? partition(place, column) : (Attribute) (Object) column.newInstance();
                output.add(ours);
                byName.put(column.name(), ours);
            }
            InternalRow[] values = rows.queryExecution().executedPlan().executeCollect();
            List copies = new ArrayList();
            for (int i = 0; i < values.length; i++) {
                copies.add(values[i].copy());
            }
            LogicalPlan below = new LocalRelation(seq(output), seq(copies), false, Option.empty());
            for (int i = place.filters.size() - 1; i >= 0; i--) {
                below = new Filter(((Filter) place.filters.get(i)).condition(), below);
            }
            boolean isOneRow = byName.containsKey(TOTAL);
            List expressions = new ArrayList();
            Seq given = place.aggregate.aggregateExpressions();
            for (int i = 0; i < given.size(); i++) {
                expressions.add(((Expression) given.apply(i)).transformUp(new OfTotals(place, byName, isOneRow)));
            }
            if (isOneRow) {
                return new Project(seq(expressions), below);
            }
            return new Aggregate(
                place.aggregate.groupingExpressions(), seq(expressions), below, place.aggregate.hint());
        }

        /** Return the relation's own column, by which groups and conditions refer to it. */
        private Attribute partition(Place place, Attribute column) {
            Seq columns = place.relation.output();
            for (int i = 0; i < columns.size(); i++) {
                Attribute each = (Attribute) columns.apply(i);
                if (each.name().equals(column.name().substring(PARTITION.length()))) {
                    if (!column.nullable()) {
                        notNull.add(Long.valueOf(each.exprId().id()));
                    }
                    return each.withNullability(column.nullable());
                }
            }
            return (Attribute) (Object) column.newInstance();
        }
    }

    /** Replaces aggregates of rows by aggregates of totals, or by the total if there is only one. */
    private static final class OfTotals extends AbstractPartialFunction {
        private final Place place;
        private final Map columns;
        private final boolean isOneRow;

        OfTotals(Place place, Map columns, boolean isOneRow) {
            this.place = place;
            this.columns = columns;
            this.isOneRow = isOneRow;
        }

        public boolean isDefinedAt(Object expression) {
            return expression instanceof AggregateExpression;
        }

        public Object applyOrElse(Object expression, Function1 otherwise) {
            if (!isDefinedAt(expression)) {
                return otherwise.apply(expression);
            }
            Object function = ((AggregateExpression) expression).aggregateFunction();
            if (function instanceof Count) {
                if (isOneRow) {
                    return columns.get(TOTAL);
                }
                Attribute count = (Attribute) columns.get(COUNT);
                List choices = new ArrayList();
                choices.add(new Sum((Expression) (Object) count).toAggregateExpression());
                choices.add(Literal$.MODULE$.apply(Long.valueOf(0)));
                return new Coalesce(seq(choices));
            }
            boolean isMin = function instanceof Min;
            String name = place.nameOf((Attribute) ((Expression) function).children().apply(0));
            Attribute bound = (Attribute) columns.get((isMin ? MIN : MAX) + name);
            if (isOneRow) {
                return bound;
            }
            return isMin ? new Min((Expression) (Object) bound).toAggregateExpression()
                : new Max((Expression) (Object) bound).toAggregateExpression();
        }
    }

    /** Columns that the relation, which stands for a table, has as nullable. */
    private static final class NotNull extends AbstractPartialFunction {
        private final Set numbers;

        NotNull(Set numbers) {
            this.numbers = numbers;
        }

        public boolean isDefinedAt(Object expression) {
            return expression instanceof AttributeReference
                && numbers.contains(Long.valueOf(((AttributeReference) expression).exprId().id()));
        }

        public Object applyOrElse(Object expression, Function1 otherwise) {
            return isDefinedAt(expression)
                ? ((AttributeReference) expression).withNullability(false) : otherwise.apply(expression);
        }
    }

    private static scala.collection.immutable.Seq seq(List of) {
        return PythonUtils.toSeq(of).toList();
    }
}
