import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import org.apache.paimon.shade.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.paimon.shade.jackson2.com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.paimon.shade.jackson2.com.fasterxml.jackson.databind.node.ObjectNode;

/**
 * Reads commands, one JSON object per line, and writes one answer per line, until the input ends.
 *
 * <pre>
 *   {"verb": "read", "warehouse": "/...", "table": "db.t", ...}   ->   {"rows": [...]}  or  {"error": "..."}
 * </pre>
 */
final class LineServant {
    private static final ObjectMapper JSON = new ObjectMapper();

    /** Carries out one command. */
    interface Verbs {
        void carryOut(JsonNode command, ObjectNode answer) throws Exception;
    }

    private LineServant() {}

    static void serve(Verbs verbs, InputStream input, PrintStream answers) throws IOException {
        BufferedReader commands = new BufferedReader(new InputStreamReader(input, StandardCharsets.UTF_8));
        for (String line = commands.readLine(); line != null; line = commands.readLine()) {
            answers.write((JSON.writeValueAsString(answer(verbs, line)) + "\n").getBytes(StandardCharsets.UTF_8));
            answers.flush();
        }
    }

    private static ObjectNode answer(Verbs verbs, String line) {
        ObjectNode answer = JSON.createObjectNode();
        try {
            verbs.carryOut(JSON.readTree(line), answer);
        } catch (Throwable problem) {
            // Catches errors as well: a missing class is reported as an answer.
            problem.printStackTrace();
            answer.removeAll();
            answer.put("error", messages(problem));
        }
        return answer;
    }

    private static String messages(Throwable problem) {
        StringBuilder said = new StringBuilder();
        for (Throwable each = problem; each != null; each = each.getCause()) {
            said.append(said.length() == 0 ? "" : "; because ").append(each);
        }
        return said.toString();
    }
}
