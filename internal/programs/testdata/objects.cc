// C++ with what a tracer could break: exceptions through many frames and across threads, constructors and destructors,
// virtual calls and casts, templates, lambdas, static objects. Prints the same each time.
#include <algorithm>
#include <cstdio>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace shapes {

struct Shape {
	virtual ~Shape() = default;
	virtual double area() const = 0;
	virtual std::string name() const { return "shape"; }
};

struct Named {
	virtual ~Named() = default;
	virtual int id() const { return 1; }
};

struct Square : Shape, Named {
	double side;
	explicit Square(double s) : side(s) {}
	double area() const override { return side * side; }
	std::string name() const override { return "square"; }
	int id() const override { return 4; } // called through a thunk
};

struct Round : virtual Shape {
	double area() const override { return 3; }
};

struct Both : Round, virtual Shape {
	std::string name() const override { return "both"; }
};

} // namespace shapes

static int alive, unwound;

struct Guard {
	int n;
	explicit Guard(int n) : n(n) { alive++; }
	~Guard() { alive--; unwound += std::uncaught_exceptions(); }
};

struct Failure : std::runtime_error {
	int code;
	Failure(int c, const std::string &s) : std::runtime_error(s), code(c) {}
};

__attribute__((noinline)) int descend(int n)
{
	Guard g(n);
	if (n == 0)
		throw Failure(42, "bottom");
	return descend(n - 1) + g.n;
}

__attribute__((noinline)) int climb(int n) // caught and thrown again at every level
{
	try {
		return n == 0 ? descend(3) : climb(n - 1);
	} catch (const std::runtime_error &) {
		Guard g(n);
		throw;
	}
}

struct Throws {
	Guard first{1};
	Throws() { throw std::string("constructor"); }
};

template <typename T, int N> struct Buffer {
	T items[N]{};
	__attribute__((noinline)) T sum() const { return std::accumulate(items, items + N, T{}); }
};

template <typename F> __attribute__((noinline)) int apply(F f, int n) { return n == 0 ? 0 : f(n) + apply(f, n - 1); }

struct Early {
	std::map<std::string, int> words;
	Early() { words["early"] = 1; }
	~Early() { std::printf("static destroyed\n"); }
} early;

static int noexcept_barrier(int n) noexcept
{
	try {
		return descend(n);
	} catch (...) {
		return -1;
	}
}

int main()
{
	using namespace shapes;
	std::vector<std::unique_ptr<Shape>> all;
	for (int i = 1; i <= 3; i++)
		all.push_back(std::make_unique<Square>(i));
	all.push_back(std::make_unique<Both>());
	double area = 0;
	for (const auto &s : all) {
		area += s->area();
		std::printf("%s %d\n", s->name().c_str(), dynamic_cast<Named *>(s.get()) ? dynamic_cast<Named *>(s.get())->id() : 0);
	}
	std::printf("area %g\n", area);

	for (int round = 0; round < 100; round++)
		try {
			descend(20);
		} catch (const Failure &f) {
			if (round == 99)
				std::printf("caught %d %s, %d alive, %d unwound\n", f.code, f.what(), alive, unwound);
		}
	try {
		climb(10);
	} catch (const std::exception &e) {
		std::printf("climbed %s, %d alive\n", e.what(), alive);
	}
	try {
		Throws t;
	} catch (const std::string &s) {
		std::printf("%s failed, %d alive\n", s.c_str(), alive);
	}
	std::printf("noexcept %d\n", noexcept_barrier(5));

	std::exception_ptr carried;
	std::thread([&] {
		try {
			climb(5);
		} catch (...) {
			carried = std::current_exception();
		}
	}).join();
	try {
		std::rethrow_exception(carried);
	} catch (const Failure &f) {
		std::printf("from a thread %d\n", f.code);
	}

	Buffer<int, 5> ints{{1, 2, 3, 4, 5}};
	Buffer<double, 2> doubles{{0.5, 0.25}};
	int base = 10;
	std::function<int(int)> f = [base](int n) { return n * base; };
	std::printf("templates %d %g %d %d\n", ints.sum(), doubles.sum(), apply(f, 4), apply([](int n) { return n; }, 5));

	std::vector<std::string> words{"pear", "apple", "fig", "banana"};
	std::sort(words.begin(), words.end(), [](const std::string &a, const std::string &b) { return a.size() < b.size() || (a.size() == b.size() && a < b); });
	for (const auto &w : words) {
		early.words[w]++;
		std::printf("%s ", w.c_str());
	}
	try {
		std::printf("%zu\n", early.words.size());
		(void)words.at(9);
	} catch (const std::out_of_range &) {
		std::printf("out of range\n");
	}
}
