import java.io.PrintStream;

/**
 * Runs the tests' SQL on Flink with Paimon's connector, in a cluster inside this JVM. LineServant defines commands and
 * answers; Flink's own output goes to standard error.
 *
 * <p>FlinkVerbs has the commands, RowJson the encoding of values.
 */
public final class FlinkServant {
    public static void main(String[] arguments) throws Exception {
        PrintStream answers = System.out;
        System.setOut(System.err);
        LocalCluster cluster = new LocalCluster();
        LineServant.serve((command, answer) -> new FlinkVerbs(cluster, command).carryOut(answer), System.in, answers);
        // Closing the cluster would take seconds; all of it ends with the JVM.
        Runtime.getRuntime().halt(0);
    }
}
