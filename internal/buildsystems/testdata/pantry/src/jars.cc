#include <stdexcept>
#include <string>

namespace pantry {
struct Jar {
	std::string label;
	int open(int n);
};

__attribute__((noinline)) int Jar::open(int n)
{
	if (n == 3)
		throw std::runtime_error(label);
	return n;
}
}

extern "C++" int jars_of(int n)
{
	pantry::Jar jar{"stuck"};
	int all = 0;
	for (int i = 0; i < n; i++) {
		try {
			all += jar.open(i);
		} catch (const std::exception &e) {
			all += e.what()[0] == 's';
		}
	}
	return all;
}

extern "C" int jars(int n) { return jars_of(n); }
