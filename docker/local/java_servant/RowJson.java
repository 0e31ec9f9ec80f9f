import java.math.BigDecimal;
import java.util.Base64;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.paimon.data.BinaryString;
import org.apache.paimon.data.DataGetters;
import org.apache.paimon.data.Decimal;
import org.apache.paimon.data.GenericArray;
import org.apache.paimon.data.GenericMap;
import org.apache.paimon.data.GenericRow;
import org.apache.paimon.data.InternalArray;
import org.apache.paimon.data.InternalMap;
import org.apache.paimon.data.InternalRow;
import org.apache.paimon.data.Timestamp;
import org.apache.paimon.data.variant.GenericVariant;
import org.apache.paimon.data.variant.Variant;
import org.apache.paimon.shade.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.paimon.shade.jackson2.com.fasterxml.jackson.databind.node.ArrayNode;
import org.apache.paimon.shade.jackson2.com.fasterxml.jackson.databind.node.JsonNodeFactory;
import org.apache.paimon.types.ArrayType;
import org.apache.paimon.types.DataType;
import org.apache.paimon.types.DataTypes;
import org.apache.paimon.types.DecimalType;
import org.apache.paimon.types.MapType;
import org.apache.paimon.types.MultisetType;
import org.apache.paimon.types.RowType;
import org.apache.paimon.utils.InternalRowUtils;

/**
 * Lossless encoding of rows as JSON: FLOAT, DOUBLE and DECIMAL as text, BYTES in base 64, DATE as days, TIME as
 * milliseconds, a TIMESTAMP as [milliseconds, nanoseconds beyond], ARRAY and ROW as lists, MAP as a list of pairs, a
 * VARIANT as [value, metadata] in base 64.
 */
final class RowJson {
    private static final JsonNodeFactory NODES = JsonNodeFactory.instance;

    private RowJson() {}

    static ArrayNode fromRow(InternalRow row, RowType type) {
        ArrayNode values = NODES.arrayNode();
        List<DataType> types = type.getFieldTypes();
        for (int position = 0; position < types.size(); position++) {
            values.add(at(row, position, types.get(position)));
        }
        return values;
    }

    static GenericRow toRow(JsonNode values, RowType type) {
        GenericRow row = new GenericRow(type.getFieldCount());
        for (int position = 0; position < type.getFieldCount(); position++) {
            row.setField(position, toValue(values.get(position), type.getTypeAt(position)));
        }
        return row;
    }

    private static JsonNode at(DataGetters values, int position, DataType type) {
        Object value = InternalRowUtils.get(values, position, type);
        return value == null ? NODES.nullNode() : fromValue(value, type);
    }

    private static JsonNode fromValue(Object value, DataType type) {
        switch (type.getTypeRoot()) {
            case BOOLEAN:
                return NODES.booleanNode((Boolean) value);
            case TINYINT:
            case SMALLINT:
            case INTEGER:
            case BIGINT:
            case DATE:
            case TIME_WITHOUT_TIME_ZONE:
                return NODES.numberNode(((Number) value).longValue());
            case FLOAT:
            case DOUBLE:
                return NODES.textNode(Double.toString(((Number) value).doubleValue()));
            case DECIMAL:
                return NODES.textNode(((Decimal) value).toBigDecimal().toPlainString());
            case CHAR:
            case VARCHAR:
                return NODES.textNode(value.toString());
            case BINARY:
            case VARBINARY:
                return NODES.textNode(Base64.getEncoder().encodeToString((byte[]) value));
            case TIMESTAMP_WITHOUT_TIME_ZONE:
            case TIMESTAMP_WITH_LOCAL_TIME_ZONE:
                Timestamp moment = (Timestamp) value;
                return NODES.arrayNode().add(moment.getMillisecond()).add(moment.getNanoOfMillisecond());
            case ARRAY:
                return fromArray((InternalArray) value, ((ArrayType) type).getElementType());
            case MAP:
                return fromMap((InternalMap) value, ((MapType) type).getKeyType(), ((MapType) type).getValueType());
            case MULTISET:
                return fromMap((InternalMap) value, ((MultisetType) type).getElementType(), DataTypes.INT());
            case ROW:
                return fromRow((InternalRow) value, (RowType) type);
            case VARIANT:
                Variant variant = (Variant) value;
                return NODES.arrayNode()
                        .add(Base64.getEncoder().encodeToString(variant.value()))
                        .add(Base64.getEncoder().encodeToString(variant.metadata()));
            default:
                throw new UnsupportedOperationException("no JSON for " + type);
        }
    }

    private static ArrayNode fromArray(InternalArray array, DataType element) {
        ArrayNode values = NODES.arrayNode();
        for (int position = 0; position < array.size(); position++) {
            values.add(at(array, position, element));
        }
        return values;
    }

    private static ArrayNode fromMap(InternalMap map, DataType key, DataType value) {
        ArrayNode pairs = NODES.arrayNode();
        InternalArray keys = map.keyArray();
        InternalArray values = map.valueArray();
        for (int position = 0; position < map.size(); position++) {
            pairs.add(NODES.arrayNode().add(at(keys, position, key)).add(at(values, position, value)));
        }
        return pairs;
    }

    static Object toValue(JsonNode json, DataType type) {
        if (json == null || json.isNull()) {
            return null;
        }
        switch (type.getTypeRoot()) {
            case BOOLEAN:
                return json.booleanValue();
            case TINYINT:
                return (byte) json.intValue();
            case SMALLINT:
                return (short) json.intValue();
            case INTEGER:
            case DATE:
            case TIME_WITHOUT_TIME_ZONE:
                return json.intValue();
            case BIGINT:
                return json.longValue();
            case FLOAT:
                return (float) Double.parseDouble(json.textValue());
            case DOUBLE:
                return Double.parseDouble(json.textValue());
            case DECIMAL:
                DecimalType decimal = (DecimalType) type;
                BigDecimal number = new BigDecimal(json.textValue());
                return Decimal.fromBigDecimal(number, decimal.getPrecision(), decimal.getScale());
            case CHAR:
            case VARCHAR:
                return BinaryString.fromString(json.textValue());
            case BINARY:
            case VARBINARY:
                return Base64.getDecoder().decode(json.textValue());
            case TIMESTAMP_WITHOUT_TIME_ZONE:
            case TIMESTAMP_WITH_LOCAL_TIME_ZONE:
                return Timestamp.fromEpochMillis(json.get(0).longValue(), json.get(1).intValue());
            case ARRAY:
                Object[] elements = new Object[json.size()];
                for (int position = 0; position < elements.length; position++) {
                    elements[position] = toValue(json.get(position), ((ArrayType) type).getElementType());
                }
                return new GenericArray(elements);
            case MAP:
                return toMap(json, ((MapType) type).getKeyType(), ((MapType) type).getValueType());
            case MULTISET:
                return toMap(json, ((MultisetType) type).getElementType(), DataTypes.INT());
            case ROW:
                return toRow(json, (RowType) type);
            case VARIANT:
                return new GenericVariant(
                        Base64.getDecoder().decode(json.get(0).textValue()),
                        Base64.getDecoder().decode(json.get(1).textValue()));
            default:
                throw new UnsupportedOperationException("no value of " + type + " from JSON");
        }
    }

    private static GenericMap toMap(JsonNode pairs, DataType key, DataType value) {
        Map<Object, Object> map = new LinkedHashMap<>();
        for (JsonNode pair : pairs) {
            map.put(toValue(pair.get(0), key), toValue(pair.get(1), value));
        }
        return new GenericMap(map);
    }
}
