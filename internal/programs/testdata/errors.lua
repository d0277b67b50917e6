-- Errors: every one leaves several C functions at once by longjmp.
local short = arg[1] == "short"

local function nest(n) if n == 0 then error({level = 0}) end return nest(n - 1) + 1 end
local ok, e = pcall(nest, 50)
print("nest", ok, e.level)

-- Protected calls in protected calls, rethrown on the way up.
local rethrown = 0
local function layers(n)
  if n == 0 then error("core", 0) end
  local ok, e = pcall(layers, n - 1)
  rethrown = rethrown + 1
  error(e .. "<", 0)
end
print("layers", select(2, pcall(layers, 20)), rethrown)

-- Caught at different depths in turn.
local function at(depth, f) if depth == 0 then return f() end return (pcall(at, depth - 1, f)) end
local seen = {}
for d = 0, 12 do seen[#seen + 1] = tostring(select(2, pcall(at, d, function() error("x") end)) ~= nil) end
print("depths", table.concat(seen, ","))

-- Message handlers, with a traceback, and errors in the handler.
print("handler", select(2, xpcall(function() local x = nil; return x.field end, function(m) return (m:gsub("^.-:%d+: ", "")) end)))
print("traceback", (select(2, xpcall(error, debug.traceback, "tb")):match("^tb\nstack traceback:")) ~= nil)
print("in handler", (xpcall(error, function(m) error(m) end, "e")))

-- Through C: sort, gsub, load with a reader, a metamethod, an iterator, tostring, require.
local function fails() error("inside", 0) end
print("sort", pcall(table.sort, {5, 2, 8, 1, 9}, fails))
print("gsub", pcall(string.gsub, "abc", "%w", fails))
print("load", pcall(load, fails))
print("index", pcall(function() return setmetatable({}, {__index = fails}).x end))
print("concat", pcall(function() return setmetatable({}, {__concat = fails}) .. "x" end))
print("compare", pcall(function() return setmetatable({}, {__lt = fails}) < {} end))
print("tostring", pcall(tostring, setmetatable({}, {__tostring = fails})))
print("iterate", pcall(function() for _ in fails do end end))
print("require", (pcall(require, "no.such.module")))
print("syntax", load("x = = 1", "=chunk"))

-- Errors of the interpreter itself.
for _, f in ipairs{function() return 1 + {} end, function() return #5 end, function() return {} < {} end,
    function() return ("x"):bad() end, function() return 1 // 0 end, function() string.rep("x", 1 << 60) end,
    function() return math.tointeger("z") + 1 end, function() setmetatable(1, {}) end, function() local t <const> = 1; t.x.y = 1 end} do
  local ok, m = pcall(f)
  print("error", ok, (tostring(m):gsub("^.-:%d+: ", "")))
end

-- Out of stack: of Lua's own, and of C's, and going on after it.
local depth, locals = 0, {}
for i = 1, short and 150 or 1 do locals[i] = "a" .. i end -- large frames fill the stack sooner
local down = load("local count = ...; local function down() local " .. table.concat(locals, ",") .. "; count(); return 1 + down() end return down")(
  function() depth = depth + 1 end)
local ok, m = pcall(down)
print("overflow", ok, m:match("stack overflow"), depth > 1000)
local function pattern() return string.gsub("x", "x", pattern) end
print("C overflow", (pcall(pattern)))
local chain = setmetatable({}, {}); for i = 1, short and 50 or 150 do chain = setmetatable({}, {__index = function(t, k) return chain end}) end
print("nested tables", load(("{"):rep(500), "=deep") == nil)
print("parentheses", select(2, load("return " .. ("("):rep(300) .. "1" .. (")"):rep(300), "=deep")):match("overflow"))

-- To-be-closed variables run on the way out.
local order = {}
local function closer(name) return setmetatable({}, {__close = function(_, e) order[#order + 1] = name .. tostring(e) end}) end
pcall(function() local a <close> = closer("a"); local b <close> = closer("b"); error("E", 0) end)
print("close", table.concat(order, " "))

local caught = 0
for i = 1, short and 300 or 20000 do
  if not pcall(error, i) then caught = caught + 1 end
  if i % 3 == 0 and not pcall(nest, i % 10) then caught = caught + 1 end
end
print("caught", caught)
print("done")
