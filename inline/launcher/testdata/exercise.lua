-- Exercises what a tracer could break in the interpreter: coroutines, errors (longjmp), collection and finalizers,
-- patterns, tables, metatables, closures, the parser, files. Prints one line a part; the results do not depend on the
-- machine. Lua's own test suite is not in Debian's source package.

-- Coroutines: a generator of primes as a chain of filters, and one that fails inside.
local function generate() return coroutine.wrap(function() local i = 1 while true do i = i + 1 coroutine.yield(i) end end) end
local function filter(p, source)
  return coroutine.wrap(function() for n in source do if n % p ~= 0 then coroutine.yield(n) end end end)
end
local source, primes = generate(), {}
for i = 1, 60 do primes[i] = source() source = filter(primes[i], source) end
print("primes", primes[60], #primes)
local co = coroutine.create(function(a) local b = coroutine.yield(a + 1) error({code = b}) end)
local _, first = coroutine.resume(co, 1)
local ok, err = coroutine.resume(co, 7)
print("coroutine", first, ok, err.code, coroutine.status(co))
local closed = false
co = coroutine.create(function() local x <close> = setmetatable({}, {__close = function() closed = true end}) coroutine.yield() end)
coroutine.resume(co)
print("close", coroutine.close(co), closed)

-- Errors: nested protected calls, errors in handlers, in metamethods, through C functions, and out of stack.
local depth = 0
local function nest(n) if n == 0 then error("bottom", 0) end
  local ok, e = pcall(nest, n - 1) depth = depth + 1 error(e, 0) end
print("pcall", select(2, pcall(nest, 100)), depth)
print("xpcall", xpcall(function() error("x", 0) end, function(m) return m .. "!" end))
print("handler", (xpcall(function() error("x") end, function() error("y") end)))
print("sort", pcall(table.sort, {3, 2, 1}, function() error("in C", 0) end))
print("gsub", pcall(string.gsub, "abc", ".", function(c) if c == "b" then error(c, 0) end end))
print("index", pcall(function() return setmetatable({}, {__index = function(_, k) error(k, 0) end}).name end))
local function deep(n) return 1 + deep(n + 1) end
print("stack", (pcall(deep, 1)))
local caught = 0
for i = 1, 20000 do if not pcall(error, i) then caught = caught + 1 end end
print("caught", caught)
local in_co = coroutine.wrap(function() return pcall(function() coroutine.yield("y") error("after yield", 0) end) end)
print("yield across pcall", in_co(), in_co())

-- Collection: finalizers, weak tables, both modes.
local finalized = 0
for i = 1, 1000 do setmetatable({}, {__gc = function() finalized = finalized + 1 end}) end
collectgarbage() collectgarbage()
local weak = setmetatable({}, {__mode = "k"})
for i = 1, 1000 do weak[{}] = i end
collectgarbage()
print("gc", finalized, next(weak))
collectgarbage("generational")
local list
for i = 1, 200000 do list = {list, i} if i % 1000 == 0 then list = nil end end
collectgarbage("incremental")
print("list", list)

-- Strings and patterns.
local words = {}
for w in ("the quick brown fox jumps over the lazy dog"):gmatch("%a+") do words[#words + 1] = w:upper() end
table.sort(words)
print("words", table.concat(words, ","))
print("balanced", ("f(a(b)c)(d)"):match("%b()"), ("key = value"):match("^(%w+)%s*=%s*(%w+)$"))
print("gsub", ("hello world"):gsub("o", {o = "0"}), (("abc"):rep(3, "-"):gsub("%w", "%0%0")))
print("pack", string.unpack("<i4z", string.pack("<i4z", -5, "zed")))
print("format", ("%5.2f|%q|%x|%-5s|"):format(3.14159, "a\nb", 255, "ab"))
print("utf8", utf8.len("äöü"), utf8.char(228, 8364))

-- Tables, closures, metatables, integers, goto, dynamic code, files.
local function fib(n) if n < 2 then return n end return fib(n - 1) + fib(n - 2) end
print("fib", fib(24))
local V = {} V.__index = V V.__add = function(a, b) return setmetatable({x = a.x + b.x}, V) end V.__eq = function(a, b) return a.x == b.x end
local v = setmetatable({x = 1}, V)
print("meta", (v + v).x, v + v == setmetatable({x = 2}, V))
local counters = {}
for i = 1, 3 do counters[i] = function() i = i + 1 return i end end
print("closures", counters[1](), counters[1](), counters[2]())
print("integers", math.maxinteger + 1 == math.mininteger, 7 // -2, 7 % -2, 1 << 62, (pcall(function() return 1 // 0 end)))
local n = 0 ::again:: n = n + 1 if n < 1000 then goto again end
print("load", load("local a <const> = ... return a * 2")(21), load("x ="), n)
local name = os.tmpname()
local f <close> = assert(io.open(name, "w+"))
for i = 1, 1000 do f:write(i, "\n") end
f:seek("set")
local total = 0
for line in f:lines("n") do total = total + line end
os.remove(name)
print("file", total)
local perms = 0
local function permute(a, k) if k == 0 then perms = perms + 1 end
  for i = 1, k do a[i], a[k] = a[k], a[i] permute(a, k - 1) a[i], a[k] = a[k], a[i] end end
permute({1, 2, 3, 4, 5, 6, 7}, 7)
print("permutations", perms)
