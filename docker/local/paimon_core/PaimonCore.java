import java.io.PrintStream;

/**
 * Paimon's Java core as a servant of the tests; commands and answers are as LineServant says. What Paimon itself says
 * goes to standard error.
 *
 * <p>The verbs are in TableVerbs, how a value is spelled in RowJson.
 */
public final class PaimonCore {
    public static void main(String[] arguments) throws Exception {
        PrintStream answers = System.out;
        System.setOut(System.err);
        LineServant.serve(
                (command, answer) -> {
                    try (TableVerbs verbs = new TableVerbs(command)) {
                        verbs.carryOut(answer);
                    }
                },
                System.in,
                answers);
        // Paimon's own threads would keep the process alive.
        System.exit(0);
    }
}
