// A shared object that is loaded late and unloaded again.
static volatile int seen;

__attribute__((noinline)) static void plugin_leaf(int i) { seen += i & 1; }

int plugin_enter(int n)
{
	for (int i = 0; i < n; i++)
		plugin_leaf(i);
	return n;
}
