import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import org.apache.paimon.shade.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.paimon.shade.jackson2.com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.paimon.shade.jackson2.com.fasterxml.jackson.databind.node.ObjectNode;

/**
 * Paimon's Java core as a servant of the tests: a command a line on standard input, an answer a line on standard
 * output, both JSON; it ends when its input does. What Paimon itself says goes to standard error.
 *
 * <pre>
 *   {"verb": "read", "warehouse": "/...", "table": "db.t", ...}   ->   {"rows": [...]}  or  {"error": "..."}
 * </pre>
 *
 * The verbs are in TableVerbs, how a value is spelled in RowJson.
 */
public final class PaimonCore {
    private static final ObjectMapper JSON = new ObjectMapper();

    public static void main(String[] arguments) throws Exception {
        PrintStream answers = System.out;
        System.setOut(System.err);
        BufferedReader commands = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = commands.readLine(); line != null; line = commands.readLine()) {
            answers.write((JSON.writeValueAsString(answer(line)) + "\n").getBytes(StandardCharsets.UTF_8));
            answers.flush();
        }
        // Paimon's own threads would keep the process alive.
        System.exit(0);
    }

    private static ObjectNode answer(String line) {
        ObjectNode answer = JSON.createObjectNode();
        try {
            JsonNode command = JSON.readTree(line);
            try (TableVerbs verbs = new TableVerbs(command)) {
                verbs.carryOut(answer);
            }
        } catch (Throwable problem) {
            // Also errors: a class that is missing is an answer too.
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
