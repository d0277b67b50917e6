import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;

/** The workloads "listing" and "call" in Java: it answers the same requests as the programs in C. Its natives are in jvmti.c. */
final class Listing {
	private static volatile long sink;

	/** Pins this thread to a processor, if that is not negative; returns the process's id. */
	private static native int pin(int cpu);

	/** Turns the events of this thread on, if the library was loaded as an agent. */
	private static native void trace(boolean on);

	/** Time that this thread has run, in ns. */
	private static native long cpu();

	/** Entries and returns of call that were recorded since the last time. */
	private static native long recorded();

	/** The traced function. */
	private static long call(int depth, int work, long sum) {
		for (int i = 0; i < work; i++) {
			sum *= i - 1;
			sum /= i + 2;
		}
		if (depth > 1)
			sum = call(depth - 1, work, sum);
		return sum;
	}

	private static void calls(long outer, int depth, int work) {
		long sum = 1;
		for (long i = 0; i < outer; i++)
			sum = call(depth, work, sum);
		sink = sum;
	}

	/** Arguments: workload, variant, processor. */
	public static void main(String[] args) throws IOException {
		int depth = args[0].equals("call") ? 1 : 10;
		System.load(System.getProperty("library"));
		System.out.println("workload: ready " + pin(Integer.parseInt(args[2])));
		BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
		for (String line; (line = in.readLine()) != null;) {
			String[] f = line.split(" "); // run PARAMETER ALIGN CALLS
			int work = Integer.parseInt(f[1]);
			long outer = (Long.parseLong(f[3]) + depth - 1) / depth;
			trace(true);
			long cpu = cpu();
			long wall = System.nanoTime();
			calls(outer, depth, work);
			wall = System.nanoTime() - wall;
			cpu = cpu() - cpu;
			trace(false);
			System.out.println("workload: done " + outer * depth + " " + wall + " " + cpu + " 0 0 " + recorded());
		}
	}
}
