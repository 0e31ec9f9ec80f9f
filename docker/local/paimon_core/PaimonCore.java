import java.io.PrintStream;

/**
 * Runs the tests' commands on Paimon's Java core. LineServant defines commands and answers; Paimon's own output goes to
 * standard error.
 *
 * <p>TableVerbs has the commands, RowJson the encoding of values.
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
