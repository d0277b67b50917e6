// The same for C++.
//
// splice: std::* Object::* Derived::Derived Base::Base _sub_* asan.* __llvm_* sancov.* *.cold _GLOBAL__* __static_init* __cxx_global*
// tree: main{leaf through{middle!{thrower!}} leaf rethrows{again!{thrower!}} leaf call{Derived::f{leaf}} twice<int> twice<double> leaf}
#include "../construct.h"

#define UNTRACED __attribute__((no_instrument_function, section(".text.braid_notrace")))
static volatile long entered, left;
extern "C" UNTRACED void __cyg_profile_func_enter(void *, void *) { entered++; }
extern "C" UNTRACED void __cyg_profile_func_exit(void *, void *) { left++; }

F int leaf(int x) { KEEP; return x + 1; }
struct Object {
	int v;
	F Object(int v) : v(v) { KEEP; }
	F ~Object() { KEEP; }
};
static Object global(1);
F int thrower(int x) { KEEP; if (x) throw x; return 0; }
F int middle(int x) { Object a(1), b(2); int r = thrower(x); KEEP; return r; }
F int through() { try { return middle(5); } catch (int i) { KEEP; return i; } }
F int again(int x) { try { return thrower(x); } catch (int &i) { i++; throw; } }
F int rethrows() { try { return again(5); } catch (int i) { KEEP; return i; } }
struct Base { virtual F int f() { KEEP; return 1; } };
struct Derived : Base { F int f() override { int r = leaf(1); KEEP; return r; } };
F int call(Base *b) { int r = b->f(); KEEP; return r; }
template <class T> F T twice(T x) { KEEP; return x + x; }

int main() {
	IS(leaf(1) == 2);
	IS(through() == 5);
	IS(leaf(1) == 2);
	IS(rethrows() == 6);
	IS(leaf(1) == 2);
	Derived d;
	IS(call(&d) == 2);
	IS(twice(2) == 4);
	IS(twice(2.5) == 5.0);
	IS(leaf(1) == 2);
	return 0;
}
