// C++: a template, an exception, a namespace.
#include <iostream>
#include <stdexcept>
#include <vector>

namespace ns {
struct Guard {
	int *where;
	~Guard() { ++*where; }
};

int thrower(int x) {
	if (x > 2)
		throw std::runtime_error("more than two");
	return x;
}

template <typename T> T sum(const std::vector<T> &v, int *guards) {
	T total{};
	for (const T &x : v) {
		Guard g{guards};
		total += thrower(x);
	}
	return total;
}
} // namespace ns

int main() {
	int guards = 0;
	try {
		std::cout << ns::sum<int>({1, 2}, &guards) << "\n";
		std::cout << ns::sum<int>({1, 2, 3}, &guards) << "\n";
	} catch (const std::exception &e) {
		std::cout << e.what() << " " << guards << "\n";
	}
}
