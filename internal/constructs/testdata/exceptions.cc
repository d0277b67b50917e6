// Exceptions: every method between throw and catch has ended without an exit.
//
// variants: -static; -fPIC; -fcf-protection=full; -fno-omit-frame-pointer; -fnon-call-exceptions
// splice: std::* __gnu* __clang*
// tree: main{through{middle!{inner!{thrower!}}} leaf
//   cleanups{cleaned!{Guard::Guard Guard::Guard thrower! Guard::~Guard{leaf} Guard::~Guard{leaf}}} leaf
//   rethrows{again!{thrower!} leaf} any{other!} leaf selects{thrower!} selects{other!}
//   construct{Part::Part Bad::Bad!{Part::Part leaf Part::Part thrower! Part::~Part Part::~Part} Part::~Part} leaf
//   tried{Tried::Tried!{Part::Part thrower! Part::~Part leaf}} leaf
//   function_try{thrower! leaf} nested{thrower! leaf thrower! leaf} leaf
//   during{cleaning!{Throwing::Throwing thrower! Throwing::~Throwing{Throwing::safe{thrower! leaf}}}} leaf
//   recursive{recursive{recursive!{recursive!{recursive!}}}} leaf
//   loop{thrower! leaf thrower! leaf thrower! leaf} filters{filtered!{thrower!}} none{leaf} leaf}
#include "construct.h"

struct Error { int v; };
F int leaf(int x) { KEEP; return x + 1; }
F int thrower(int x) { KEEP; if (x) throw Error{x}; return 0; }
F int other(int x) { KEEP; if (x) throw x; return 0; }
F int inner(int x) { int r = thrower(x); KEEP; return r; }
F int middle(int x) { int r = inner(x); KEEP; return r; }
F int through() { try { return middle(5); } catch (const Error &e) { return e.v; } }

struct Guard {
	F Guard() { KEEP; }
	F ~Guard() { leaf(1); KEEP; }
};
F int cleaned(int x) { Guard a, b; int r = thrower(x); KEEP; return r; }
F int cleanups() { try { return cleaned(6); } catch (Error e) { KEEP; return e.v; } }
F int again(int x) { try { return thrower(x); } catch (Error &e) { e.v++; throw; } }
F int rethrows() { try { return again(7); } catch (Error e) { int r = leaf(e.v); KEEP; return r; } }
F int any() { try { return other(1); } catch (...) { KEEP; return 2; } }
F int selects(int x) {
	try {
		if (x) return thrower(x);
		return other(9);
	} catch (int i) {
		return i;
	} catch (Error e) {
		return e.v;
	}
}

struct Part {
	F Part() { KEEP; }
	F ~Part() { KEEP; }
};
struct Bad {
	Part a;
	int x;
	Part b;
	F Bad(int y) : x(leaf(y)) { thrower(y); KEEP; }
};
F int construct(int x) { try { Part p; Bad b(x); KEEP; return b.x; } catch (Error e) { return e.v; } }
struct Tried {
	Part p;
	F Tried(int x) try { thrower(x); KEEP; } catch (Error &) { leaf(x); KEEP; }
};
F int tried(int x) { try { Tried t(x); KEEP; return 0; } catch (Error e) { return e.v; } }
F int function_try(int x) try { int r = thrower(x); KEEP; return r; } catch (Error e) { int r = leaf(e.v); KEEP; return r; }
F int nested(int x) {
	try {
		thrower(x);
	} catch (Error a) {
		int r = leaf(a.v);
		try {
			thrower(r);
		} catch (Error b) {
			r += leaf(b.v);
			KEEP;
			return r;
		}
	}
	return 0;
}
struct Throwing {
	F Throwing() { KEEP; }
	F static int safe(int x) { try { thrower(x); return 0; } catch (Error e) { int r = leaf(e.v); KEEP; return r; } }
	F ~Throwing() { safe(3); KEEP; }
};
F int cleaning(int x) { Throwing t; int r = thrower(x); KEEP; return r; }
F int during(int x) { try { return cleaning(x); } catch (Error e) { KEEP; return e.v; } }
// The second call catches what the fifth throws.
F int recursive(int depth) {
	KEEP;
	if (depth == 4) throw Error{depth};
	try {
		int r = recursive(depth + 1);
		KEEP;
		return r;
	} catch (Error e) {
		if (depth != 1) throw;
		return 100 + e.v;
	}
}
F int loop(int n) { int s = 0; for (int i = 1; i <= n; i++) try { thrower(i); } catch (Error e) { s += leaf(e.v); } KEEP; return s; }
F int filtered(int x) noexcept(false) { const Guard *g = nullptr; (void)g; int r = thrower(x); KEEP; return r; }
F int filters(int x) { try { return filtered(x); } catch (const int &) { return 1; } catch (const Error &) { return 2; } catch (...) { return 3; } }
F int none() { try { int r = leaf(1); KEEP; return r; } catch (...) { return -1; } }

int main() {
	IS(through() == 5);
	leaf(1);
	IS(cleanups() == 6);
	leaf(1);
	IS(rethrows() == 9);
	IS(any() == 2);
	leaf(1);
	IS(selects(8) == 8);
	IS(selects(0) == 9);
	IS(construct(4) == 4);
	leaf(1);
	IS(tried(5) == 5);
	leaf(1);
	IS(function_try(3) == 4);
	IS(nested(1) == 5);
	leaf(1);
	IS(during(2) == 2);
	leaf(1);
	IS(recursive(0) == 104);
	leaf(1);
	IS(loop(3) == 9);
	IS(filters(1) == 2);
	IS(none() == 2);
	leaf(1);
	return 0;
}
