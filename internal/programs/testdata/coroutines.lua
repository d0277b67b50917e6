-- Coroutines: in Lua 5.4 a yield and an error leave the C functions above the resume by longjmp.
local short = arg[1] == "short"

local function range(n) return coroutine.wrap(function() for i = 1, n do coroutine.yield(i) end end) end
local sum = 0
for i in range(short and 200 or 5000) do sum = sum + i end
print("sum", sum)

-- A chain of filters: resume within resume, many deep.
local function numbers() return coroutine.wrap(function() local i = 1; while true do i = i + 1; coroutine.yield(i) end end) end
local function sieve(p, from) return coroutine.wrap(function() for n in from do if n % p ~= 0 then coroutine.yield(n) end end end) end
local from, last = numbers(), nil
for _ = 1, short and 12 or 40 do last = from(); from = sieve(last, from) end
print("prime", last)

-- Both ways, errors inside, status.
local co = coroutine.create(function(a, b) local c = coroutine.yield(a + b); local d, e = coroutine.yield(c * 2); error({d, e}) end)
print("resume", coroutine.resume(co, 1, 2))
print("resume", coroutine.resume(co, 10))
local ok, e = coroutine.resume(co, "x", "y")
print("error", ok, e[1], e[2], coroutine.status(co), coroutine.resume(co))

-- Across pcall, metamethods, iterators and table.sort (which can not).
local w = coroutine.wrap(function() local r = {pcall(function() coroutine.yield("in pcall"); error("after", 0) end)}; coroutine.yield(r[2]); return "end" end)
print("pcall", w(), w(), w())
local mt = {__add = function(a, b) return coroutine.yield("adding") end, __index = function(_, k) return coroutine.yield(k) end}
w = coroutine.wrap(function() local o = setmetatable({}, mt); local x = o + 1; return x + o.field end)
print("metamethods", w(), w(40), w(2))
w = coroutine.wrap(function() for v in function() return coroutine.yield("next") end do return v end end)
print("iterator", w(), w("value"))
print("sort", coroutine.resume(coroutine.create(function() table.sort({3, 1, 2}, function(a, b) coroutine.yield(); return a < b end) end)))
print("outside", pcall(coroutine.yield))

-- Recursion: the permutations of a list, each from its own coroutine's depth.
local function permute(a, n)
  if n <= 1 then coroutine.yield(table.concat(a)) return end
  for i = 1, n do a[i], a[n] = a[n], a[i]; permute(a, n - 1); a[i], a[n] = a[n], a[i] end
end
local count, first = 0, nil
for p in coroutine.wrap(function() permute({"a", "b", "c", "d", "e"}, 5) end) do count = count + 1; first = first or p end
print("permutations", count, first)

-- Closing suspended ones, errors while closing, and a resume chain too deep for C.
local log = {}
co = coroutine.create(function() local x <close> = setmetatable({}, {__close = function() log[#log + 1] = "closed" end}); coroutine.yield() end)
coroutine.resume(co)
print("close", coroutine.close(co), log[1], coroutine.status(co))
co = coroutine.create(function() local x <close> = setmetatable({}, {__close = function() error("closing", 0) end}); coroutine.yield() end)
coroutine.resume(co)
print("close", coroutine.close(co))
local function deeper(n) local c = coroutine.wrap(deeper); return c(n + 1) end
print("too deep", (pcall(deeper, 1)))
print("running", select(2, coroutine.running()), coroutine.isyieldable())
print("done")
