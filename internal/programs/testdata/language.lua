-- The language without errors: closures, metamethods, goto, varargs, collection, recursion.
local short = arg[1] == "short"

local function fib(n) if n < 2 then return n end return fib(n - 1) + fib(n - 2) end
print("fib", fib(short and 12 or 22))
local function ack(m, n) if m == 0 then return n + 1 elseif n == 0 then return ack(m - 1, 1) end return ack(m - 1, ack(m, n - 1)) end
print("ackermann", ack(2, short and 3 or 9))
local function depth(n) if n == 0 then return 0 end return 1 + depth(n - 1) end
print("depth", depth(short and 500 or 15000))
local function loop(n, acc) if n == 0 then return acc end return loop(n - 1, acc + n) end
print("tail calls", loop(short and 1000 or 100000, 0))

local function counter() local n = 0; return function() n = n + 1; return n end, function() return n end end
local up, get = counter(); up(); up(); up()
local fs = {}; for i = 1, 5 do fs[i] = function() i = i * 2; return i end end
print("closures", get(), fs[1](), fs[1](), fs[5]())

local function pack2(...) return select("#", ...), {...}, (...) end
print("varargs", pack2(1, nil, 3, nil), select(-1, 1, 2, 3), table.unpack({1, 2, 3}, 2), math.max(table.unpack({4, 9, 2})))
print("many", select("#", table.unpack({}, 1, 200)))

for i = 1, 3 do
  for j = 1, 3 do
    if j == 2 then goto next end
    if i == 3 then goto out end
    io.write(i, ":", j, " ")
    ::next::
  end
end
::out:: print("goto")

local Vector = {}; Vector.__index = Vector
local function V(x, y) return setmetatable({x = x, y = y}, Vector) end
Vector.__add = function(a, b) return V(a.x + b.x, a.y + b.y) end
Vector.__mul = function(a, k) return V(a.x * k, a.y * k) end
Vector.__unm = function(a) return V(-a.x, -a.y) end
Vector.__eq = function(a, b) return a.x == b.x and a.y == b.y end
Vector.__lt = function(a, b) return a.x < b.x end
Vector.__le = function(a, b) return a.x <= b.x end
Vector.__len = function(a) return 2 end
Vector.__call = function(a, z) return a.x + a.y + z end
Vector.__tostring = function(a) return "(" .. a.x .. "," .. a.y .. ")" end
Vector.__concat = function(a, b) return tostring(a) .. tostring(b) end
print("metamethods", tostring(V(1, 2) + V(3, 4) * 2), -V(1, 1) == V(-1, -1), V(1, 0) < V(2, 0), V(1, 0) <= V(0, 0), #V(1, 1), V(1, 2)(3), V(1, 2) .. V(3, 4))
local log = {}
local proxy = setmetatable({}, {__index = function(_, k) return k .. "!" end, __newindex = function(t, k, v) rawset(t, k, v + 1) end})
proxy.a = 1
print("proxy", proxy.a, proxy.b, rawget(proxy, "b"), rawlen({1, 2}), rawequal(proxy, proxy))

local finalized, weak = 0, setmetatable({}, {__mode = "v"})
for mode = 1, 2 do
  collectgarbage(mode == 1 and "incremental" or "generational")
  for i = 1, short and 300 or 20000 do
    local t = setmetatable({i, {i}}, i % 10 == 0 and {__gc = function() finalized = finalized + 1 end} or nil)
    weak[i] = t
  end
  collectgarbage(); collectgarbage()
end
print("collection", finalized, next(weak))

print("numbers", 7 // 2, -7 // 2, 7 % -3, -7 % 3, 7.5 // 2, 2 ^ 10, 10 / 2, 3 | 4, 7 & 2, 5 ~ 1, ~0, 1 << 63, 1 >> 1, math.maxinteger + 1 == math.mininteger, 1e15, 0x10p2, 1 == 1.0, math.type(3), math.type(3.0), "10" + 5)
local t = {}; for i = 1, short and 300 or 3000 do t[i] = (i * 7919) % 1009 end
table.sort(t, function(a, b) return a > b end)
print("sort", t[1], t[#t], #t, table.concat({1, 2, 3}, "-"), table.remove(t), table.unpack(table.move({1, 2, 3}, 1, 3, 2)))
print("load", load("local a <const> = ...; return function() return a end")(9)(), load(string.dump(function(x) return x * 3 end))(14))
print("done")
