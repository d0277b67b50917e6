// C++20's coroutines: a generator, symmetric transfer, exceptions through them. What
// optimisation inlines of them is its own affair.
//
// flags: -std=c++20
// compilers: gcc clang-19
// splice [-O0]: std::* Gen::* Task::*
// splice: std::* Gen::* Task::* count fails small sum
// tree [gcc-O0]: main{generate{count{count} count*3{leaf} count count{count}} leaf
//   throws{fails{fails} fails leaf fails{leaf} fails{fails} leaf} leaf
//   transfer{sum{sum} sum{small{small} small{leaf sum{small*2{small} small{leaf sum{small*2{small}
//   small{leaf sum{small{small}}}}}}}} sum{sum}} leaf}
// tree [clang-19-O0]: main{generate{count count*3{leaf} count*2} leaf throws{fails*2 leaf fails{leaf} fails leaf} leaf
//   transfer{sum sum{small} small{leaf} sum{small*2} small{leaf} sum{small*2} small{leaf} sum{small} sum} leaf}
// tree: main{generate{leaf*3} leaf throws{leaf*3} leaf transfer{leaf*3} leaf}
#include "construct.h"
#include <coroutine>
#include <exception>
#include <utility>

F int leaf(int x) { KEEP; return x + 1; }

struct Gen {
	struct promise_type {
		int value;
		std::exception_ptr error;
		Gen get_return_object() { return Gen{std::coroutine_handle<promise_type>::from_promise(*this)}; }
		std::suspend_always initial_suspend() noexcept { return {}; }
		std::suspend_always final_suspend() noexcept { return {}; }
		std::suspend_always yield_value(int v) { value = v; return {}; }
		void return_void() {}
		void unhandled_exception() { error = std::current_exception(); }
	};
	std::coroutine_handle<promise_type> h;
	explicit Gen(std::coroutine_handle<promise_type> h) : h(h) {}
	Gen(Gen &&o) : h(std::exchange(o.h, nullptr)) {}
	~Gen() { if (h) h.destroy(); }
	bool next() { h.resume(); if (h.promise().error) std::rethrow_exception(h.promise().error); return !h.done(); }
};

Gen count(int n) {
	for (int i = 0; i < n; i++) {
		leaf(i);
		co_yield i;
	}
}
Gen fails(int n) {
	co_yield n;
	leaf(n);
	if (n) throw n;
	co_yield 7;
}

struct Task {
	struct promise_type {
		int value = 0;
		std::coroutine_handle<> waiter = std::noop_coroutine();
		Task get_return_object() { return Task{std::coroutine_handle<promise_type>::from_promise(*this)}; }
		std::suspend_always initial_suspend() noexcept { return {}; }
		struct Final {
			bool await_ready() noexcept { return false; }
			std::coroutine_handle<> await_suspend(std::coroutine_handle<promise_type> h) noexcept { return h.promise().waiter; }
			void await_resume() noexcept {}
		};
		Final final_suspend() noexcept { return {}; }
		void return_value(int v) { value = v; }
		void unhandled_exception() { std::terminate(); }
	};
	std::coroutine_handle<promise_type> h;
	explicit Task(std::coroutine_handle<promise_type> h) : h(h) {}
	Task(Task &&o) : h(std::exchange(o.h, nullptr)) {}
	~Task() { if (h) h.destroy(); }
	bool await_ready() { return false; }
	std::coroutine_handle<> await_suspend(std::coroutine_handle<> w) { h.promise().waiter = w; return h; }
	int await_resume() { return h.promise().value; }
};
Task small(int x) { co_return leaf(x); }
Task sum(int n) {
	int s = 0;
	for (int i = 0; i < n; i++) s += co_await small(i);
	co_return s;
}

F int generate() { int s = 0; Gen g = count(3); while (g.next()) s = s * 10 + g.h.promise().value; KEEP; return s; }
F int throws() { try { Gen g = fails(4); while (g.next()) leaf(0); return 0; } catch (int i) { int r = leaf(i); KEEP; return r; } }
F int transfer() { Task t = sum(3); t.h.resume(); KEEP; return t.h.promise().value; }

int main() {
	IS(generate() == 12);
	leaf(1);
	IS(throws() == 5);
	leaf(1);
	IS(transfer() == 6);
	leaf(1);
	return 0;
}
