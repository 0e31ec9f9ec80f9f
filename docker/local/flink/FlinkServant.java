import java.io.PrintStream;

/**
 * Flink with Paimon's connector as a servant of the tests: a cluster inside this JVM runs their SQL. Commands and
 * answers are as LineServant says; what Flink itself says goes to standard error.
 *
 * <p>The verbs are in FlinkVerbs, how a value is spelled in RowJson.
 */
public final class FlinkServant {
    public static void main(String[] arguments) throws Exception {
        PrintStream answers = System.out;
        System.setOut(System.err);
        LocalCluster cluster = new LocalCluster();
        LineServant.serve((command, answer) -> new FlinkVerbs(cluster, command).carryOut(answer), System.in, answers);
        // Closing the cluster takes seconds, and nothing of it outlives the JVM.
        Runtime.getRuntime().halt(0);
    }
}
