package dynamic_table;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.math.BigDecimal;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Base64;
import java.util.HashSet;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.spark.api.python.PythonUtils;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeSet;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.plans.QueryPlan;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.execution.datasources.DataSourceStrategy$;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.sources.Filter;
import scala.Option;
import scala.Product;
import scala.collection.Seq;

/** Columns and conditions of relations in an optimised plan, as JSON for query_needs.py. */
public final class QueryNeeds {
    private static final JsonNodeFactory JSON = JsonNodeFactory.instance;

    /** A node to look at, the conditions directly above it, and the node above these that uses the columns. */
    private static final class Place {
        final QueryPlan node;
        final List conditions;
        final QueryPlan user;

        Place(QueryPlan node, List conditions, QueryPlan user) {
            this.node = node;
            this.conditions = conditions;
            this.user = user;
        }
    }

    /** Return an array with each place, also in subqueries, where a relation with the option is read. */
    public String of(QueryPlan plan, String option) {
        ArrayNode found = JSON.arrayNode();
        Map seen = new IdentityHashMap();
        ArrayDeque waiting = new ArrayDeque();
        waiting.push(new Place(plan, new ArrayList(), null));
        while (!waiting.isEmpty()) {
            Place place = (Place) waiting.pop();
            QueryPlan node = place.node;
            String number = number(node, option);
            if (number != null) {
                found.add(needs(place, number));
                continue;
            }
            if (node instanceof org.apache.spark.sql.catalyst.plans.logical.Filter) {
                List conditions = new ArrayList(place.conditions);
                conditions.add(((org.apache.spark.sql.catalyst.plans.logical.Filter) node).condition());
                waiting.push(new Place((QueryPlan) node.children().apply(0), conditions, place.user));
            } else {
                // These output nothing but what their expressions compute.
                QueryPlan user = node instanceof Project || node instanceof Aggregate ? node : null;
                for (int i = 0; i < node.children().size(); i++) {
                    waiting.push(new Place((QueryPlan) node.children().apply(i), new ArrayList(), user));
                }
            }
            add(node.subqueries(), seen, waiting);
            add(node.innerChildren(), seen, waiting);
        }
        return found.toString();
    }

    private static void add(Seq below, Map seen, ArrayDeque waiting) {
        for (int i = 0; i < below.size(); i++) {
            Object inner = below.apply(i);
            if (inner instanceof QueryPlan && seen.put(inner, inner) == null) {
                waiting.push(new Place((QueryPlan) inner, new ArrayList(), null));
            }
        }
    }

    private static String number(QueryPlan node, String option) {
        if (!(node instanceof LogicalRelation)) {
            return null;
        }
        Object relation = ((LogicalRelation) node).relation();
        if (!(relation instanceof HadoopFsRelation)) {
            return null;
        }
        Option number = ((HadoopFsRelation) relation).options().get(option);
        return number.isDefined() ? (String) number.get() : null;
    }

    private static ObjectNode needs(Place place, String number) {
        ObjectNode needs = JSON.objectNode();
        needs.put("number", Integer.parseInt(number));
        Set used = new HashSet();
        ArrayNode filters = needs.putArray("filters");
        // References have the query's spelling, whose case may differ from the table's.
        scala.collection.immutable.Seq conditions = DataSourceStrategy$.MODULE$.normalizeExprs(
            PythonUtils.toSeq(place.conditions).toList(), place.node.output());
        for (int i = 0; i < conditions.size(); i++) {
            Expression condition = (Expression) conditions.apply(i);
            addNumbers(condition.references(), used);
            addFilters(condition, filters);
        }
        if (place.user != null) {
            addNumbers(place.user.references(), used);
        }
        ArrayNode columns = needs.putArray("columns");
        Seq output = place.node.output();
        for (int i = 0; i < output.size(); i++) {
            Attribute column = (Attribute) output.apply(i);
            if (place.user == null || used.contains(Long.valueOf(column.exprId().id()))) {
                columns.add(column.name());
            }
        }
        return needs;
    }

    private static void addNumbers(AttributeSet references, Set used) {
        Seq attributes = references.toSeq();
        for (int i = 0; i < attributes.size(); i++) {
            used.add(Long.valueOf(((Attribute) attributes.apply(i)).exprId().id()));
        }
    }

    private static void addFilters(Expression condition, ArrayNode filters) {
        Option found = DataSourceStrategy$.MODULE$.translateFilter(condition, false);
        if (found.isDefined()) {
            filters.add(filter((Filter) found.get()));
        } else if (condition instanceof And) {
            // Spark translates a conjunction as a whole or not at all.
            addFilters(((And) condition).left(), filters);
            addFilters(((And) condition).right(), filters);
        }
    }

    private static ObjectNode filter(Filter given) {
        ObjectNode filter = JSON.objectNode();
        filter.put("kind", given.getClass().getSimpleName());
        Product parts = (Product) given;
        for (int i = 0; i < parts.productArity(); i++) {
            String name = parts.productElementName(i);
            Object part = parts.productElement(i);
            if (part instanceof Filter) {
                filter.set(name, filter((Filter) part));
            } else if (part instanceof Object[]) {
                ArrayNode values = filter.putArray(name);
                Object[] each = (Object[]) part;
                for (int j = 0; j < each.length; j++) {
                    addValue(values, each[j]);
                }
            } else {
                ArrayNode value = JSON.arrayNode();
                addValue(value, part);
                filter.set(name, value.get(0));
            }
        }
        return filter;
    }

    private static void addValue(ArrayNode values, Object value) {
        if (value == null) {
            values.addNull();
        } else if (value instanceof Boolean) {
            values.add((Boolean) value);
        } else if (value instanceof String) {
            values.add((String) value);
        } else if (value instanceof Byte || value instanceof Short || value instanceof Integer
            || value instanceof Long) {
            values.add(((Number) value).longValue());
        } else {
            ObjectNode typed = values.addObject();
            if (value instanceof BigDecimal) {
                typed.put("decimal", value.toString());
            } else if (value instanceof byte[]) {
                typed.put("bytes", Base64.getEncoder().encodeToString((byte[]) value));
            } else if (value instanceof java.sql.Date) {
                typed.put("date", value.toString());
                typed.put("millis", ((java.sql.Date) value).getTime());
            } else if (value instanceof LocalDate) {
                typed.put("date", value.toString());
            } else if (value instanceof LocalDateTime) {
                typed.put("moment", value.toString());
            } else {
                typed.put("other", value.getClass().getName());
            }
        }
    }
}
