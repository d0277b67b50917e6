// Virtual calls, multiple and virtual inheritance, thunks, covariant results, pointers to members.
//
// splice: Root::Root Left::Left Right::Right Leaf::Leaf Pure::Pure A::A B::B Bottom::Bottom
// tree [gcc-O0 gcc-O1]: main{Both::Both call_a{Both::f} call_b{non-virtualthunktoBoth::g() Both::g}
//   dups{covariantreturnthunktoBoth::dup() covariantreturnthunktoBoth::dup(){Both::dup}} member{Both::f}
//   member{A::plain} pure{Leaf::virt{leaf}} diamond{virtualthunktoLeft::value() Left::value}
//   destroy{non-virtualthunktoBoth::~Both() Both::~Both{Both::~Both{B::~B A::~A}}}}
// tree [gcc-O2 gcc-O3 gcc-Os]: main{Both::Both call_a{Both::f} call_b{non-virtualthunktoBoth::g() Both::g}
//   dups{covariantreturnthunktoBoth::dup() covariantreturnthunktoBoth::dup(){Both::dup}} member{Both::f}
//   member{A::plain} pure{Leaf::virt{leaf}} diamond{virtualthunktoLeft::value() Left::value}
//   destroy{non-virtualthunktoBoth::~Both() Both::~Both{Both::~Both{B::~B} A::~A}}}
// tree [clang-O0]: main{Both::Both call_a{Both::f} call_b{non-virtualthunktoBoth::g() Both::g}
//   dups{covariantreturnthunktoBoth::dup(){Both::dup}} member{Both::f}
//   member{A::plain} pure{Leaf::virt{leaf}} diamond{virtualthunktoLeft::value() Left::value}
//   destroy{non-virtualthunktoBoth::~Both() Both::~Both{Both::~Both{B::~B A::~A}}}}
// tree [clang-O1 clang-O2 clang-O3 clang-Os]: main{Both::Both call_a{Both::f} call_b{non-virtualthunktoBoth::g() Both::g}
//   dups{covariantreturnthunktoBoth::dup(){Both::dup}} member{Both::f}
//   member{A::plain} pure{Leaf::virt{leaf}} diamond{virtualthunktoLeft::value() Left::value}
//   destroy{non-virtualthunktoBoth::~Both() Both::~Both{Both::~Both{B::~B} A::~A}}}
#include "construct.h"

F int leaf(int x) { KEEP; return x + 1; }
struct A {
	long a = 1;
	virtual F int f() { KEEP; return 1; }
	virtual F A *clone() { KEEP; return nullptr; }
	F int plain() { KEEP; return 3; }
	virtual F ~A() { KEEP; }
};
struct B {
	long b = 2;
	virtual F int g() { KEEP; return 2; }
	virtual F B *dup() { KEEP; return nullptr; }
	virtual F ~B() { KEEP; }
};
struct Both : A, B {
	F Both() { KEEP; }
	F int f() override { KEEP; return 10; }
	F int g() override { KEEP; return 20; }
	F Both *dup() override { KEEP; return this; }
	F ~Both() override { KEEP; }
};
struct Root { long r = 5; virtual F int value() { KEEP; return 1; } F virtual ~Root() { KEEP; } };
struct Left : virtual Root { F int value() override { KEEP; return 2; } };
struct Right : virtual Root { long x = 6; };
struct Bottom : Left, Right { long y = 7; };
struct Pure { virtual int virt() = 0; virtual F ~Pure() { KEEP; } };
struct Leaf final : Pure { F int virt() override { int r = leaf(1); KEEP; return r; } };

F int call_a(A *a) { int r = a->f(); KEEP; return r; }
F int call_b(B *b) { int r = b->g(); KEEP; return r; }
F B *dups(B *b) { B *r = b->dup(); KEEP; return r; }
F int pure(Pure *p) { int r = p->virt(); KEEP; return r; }
F int member(A *a, int (A::*m)()) { int r = (a->*m)(); KEEP; return r; }
F int diamond(Root *r) { int v = r->value(); KEEP; return v; }
F void destroy(B *b) { delete b; KEEP; }

int main() {
	Both *both = new Both;
	IS(call_a(both) == 10);
	IS(call_b(both) == 20);
	IS(dups(both) == both);
	IS(member(both, &A::f) == 10);
	IS(member(both, &A::plain) == 3);
	IS(pure(new Leaf) == 2);
	IS(diamond(new Bottom) == 2);
	destroy(both);
	return 0;
}
