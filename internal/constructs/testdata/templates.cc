// Templates, lambdas, function objects, inline variables, operators, local classes, default arguments.
//
// flags: -std=c++17
// splice: operatornew std::* __gnu* __clang* _GLOBAL__* __static_init* __cxx_global*
// tree [gcc]: initial*2 main{twice<int> twice<double> twice<char>
//   Fact<3>::value{Fact<2>::value{Fact<1>::value{Fact<0>::value}}} count<int,int,int>
//   apply<main::lambda1>{main::lambda1::operator(){leaf}} apply<Adder>{Adder::operator()}
//   Number::operator+ Number::operatorint Number::operator[] Adder::operator()
//   outer::v1::versioned{outer::(anonymousnamespace)::hidden} local{local(int)::In::go} once{initial} once}
// tree [clang]: initial*2 main{twice<int> twice<double> twice<char>
//   Fact<3>::value{Fact<2>::value{Fact<1>::value{Fact<0>::value}}} count<int,int,int>
//   apply<main::$_0>{main::$_0::operator(){leaf}} apply<Adder>{Adder::operator()}
//   Number::operator+ Number::operatorint Number::operator[] Adder::operator()
//   outer::v1::versioned{outer::(anonymousnamespace)::hidden} local{local(int)::In::go} once{initial} once}
#include "construct.h"
#include <functional>

F int leaf(int x) { KEEP; return x + 1; }
F int initial(int x) { KEEP; return x; }
inline int counted = initial(7);
static int later = initial(counted + 1);
template <class T> F T twice(T x) { KEEP; return x + x; }
template <> F char twice(char c) { KEEP; return c; }
template <int N> struct Fact { F static int value() { int r = N * Fact<N - 1>::value(); KEEP; return r; } };
template <> struct Fact<0> { F static int value() { KEEP; return 1; } };
template <class... T> F int count(T... t) { KEEP; return sizeof...(t) + (0 + ... + t); }
template <class G> F int apply(G g, int x) { int r = g(x); KEEP; return r; }
struct Adder { int n; F int operator()(int x) const { KEEP; return x + n; } };
struct Number {
	int v;
	F Number operator+(const Number &o) const { KEEP; return {v + o.v}; }
	F explicit operator int() const { KEEP; return v; }
	F int &operator[](int) { KEEP; return v; }
};
namespace outer { namespace { F int hidden(int x) { KEEP; return x + 3; } } inline namespace v1 { F int versioned(int x) { int r = hidden(x); KEEP; return r; } } }
F int local(int x) { struct In { F static int go(int y) { KEEP; return y * 2; } }; int r = In::go(x); KEEP; return r; }
F int once(int x) { static int v = initial(x); KEEP; return v; }

int main() {
	IS(counted == 7 && later == 8);
	IS(twice(2) == 4);
	IS(twice(2.5) == 5.0);
	IS(twice('a') == 'a');
	IS(Fact<3>::value() == 6);
	IS(count(1, 2, 3) == 9);
	int captured = 5;
	IS(apply([&](int x) __attribute__((noinline)) { KEEP; return leaf(x) + captured; }, 1) == 7);
	IS(apply(Adder{4}, 1) == 5);
	IS(int(Number{1} + Number{2}) == 3);
	Number n{4};
	n[0]++;
	IS(n.v == 5);
	std::function<int(int)> f = Adder{1};
	IS(f(1) == 2);
	IS(outer::versioned(1) == 4);
	IS(local(2) == 4);
	IS(once(3) == 3 && once(4) == 3);
	return 0;
}
