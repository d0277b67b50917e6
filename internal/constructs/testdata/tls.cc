// Thread-local objects with destructors, and statics: what runs before main and behind it.
//
// flags: -pthread
// variants: -static
// splice: std::* __gnu* __clang* _GLOBAL__* __static_init* __cxx_global* TLSinit* TLSwrapper*
// tree: Object::Object Object::Object main{leaf use{Object::Object} use leaf} Object::~Object{leaf} Object::~Object{leaf} Object::~Object{leaf}
// tree: body{use{Object::Object} leaf} Object::~Object{leaf}
#include "construct.h"
#include <pthread.h>

F int leaf(int x) { KEEP; return x + 1; }
struct Object {
	int v;
	F Object(int v) : v(v) { KEEP; }
	F ~Object() { leaf(v); KEEP; }
};
Object first(1);
static Object second(2);
thread_local Object local(3);
F int use() { KEEP; return local.v++; }
F void *body(void *p) { use(); leaf(1); KEEP; return p; }

int main() {
	leaf(1);
	IS(use() == 3);
	IS(use() == 4);
	pthread_t t;
	IS(!pthread_create(&t, nullptr, body, nullptr));
	pthread_join(t, nullptr);
	leaf(1);
	return 0;
}
