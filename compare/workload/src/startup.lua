-- What a program does when it starts: it compiles modules, reads a configuration, builds tables from it, sorts, formats
-- and writes. It raises no errors and switches no coroutines, so that every call of a function of the interpreter returns;
-- it lists tables by string and integer keys only, so that each run takes the same course.

-- A configuration as text.
local lines = {}
for i = 1, 300 do
	lines[#lines + 1] = ("service.%03d.%s = %d ; weight %.2f"):format(i % 97, (i % 3 == 0) and "limit" or "size", i * 7919 % 10007, i / 7)
end
local text = table.concat(lines, "\n")

-- Read it.
local settings, order = {}, {}
for section, number, key, value, weight in text:gmatch("(%a+)%.(%d+)%.(%a+) = (%d+) ; weight ([%d.]+)") do
	local name = section .. number
	local s = settings[name]
	if not s then
		s = { name = name, values = {}, weight = 0 }
		settings[name] = s
		order[#order + 1] = s
	end
	s.values[#s.values + 1] = { key = key, value = tonumber(value) }
	s.weight = s.weight + tonumber(weight)
end
assert(#order == 97)

-- Modules, compiled from source that is made on the spot.
local modules = {}
for i = 1, 40 do
	local source = ([[
		local M = { id = %d }
		local function square(x) return x * x end
		function M.work(n, f)
			local sum = M.id
			for i = 1, n do sum = sum + square(i) %% f(i) end
			return sum
		end
		function M.name(prefix) return prefix .. "." .. M.id .. "." .. tostring(M.id // 3) end
		return M
	]]):format(i)
	modules[i] = assert(load(source, "=module" .. i))()
end

-- Objects with methods and operators.
local Vector = {}
Vector.__index = Vector
Vector.__add = function(a, b) return setmetatable({ x = a.x + b.x, y = a.y + b.y }, Vector) end
Vector.__lt = function(a, b) return a:length() < b:length() end
Vector.__tostring = function(v) return ("(%d,%d)"):format(v.x, v.y) end
function Vector:length() return self.x * self.x + self.y * self.y end
local vectors = {}
for i = 1, 400 do
	vectors[i] = setmetatable({ x = i * 31 % 101, y = i * 17 % 89 }, Vector)
end
table.sort(vectors)
local sum = setmetatable({ x = 0, y = 0 }, Vector)
for _, v in ipairs(vectors) do
	sum = sum + v
end

-- Written out again.
local function encode(value, out)
	if type(value) == "table" then
		local keys = {}
		for k in pairs(value) do keys[#keys + 1] = k end
		table.sort(keys, function(a, b) return tostring(a) < tostring(b) end)
		out[#out + 1] = "{"
		for _, k in ipairs(keys) do
			out[#out + 1] = tostring(k) .. ":"
			encode(value[k], out)
			out[#out + 1] = ","
		end
		out[#out + 1] = "}"
	elseif type(value) == "string" then
		out[#out + 1] = string.format("%q", value:gsub("%d", function(d) return tostring(9 - tonumber(d)) end))
	else
		out[#out + 1] = tostring(value)
	end
	return out
end
table.sort(order, function(a, b) return a.weight > b.weight or a.weight == b.weight and a.name < b.name end)
local result = table.concat(encode(order, {}))

local total = 0
for i, m in ipairs(modules) do
	local ok, n = pcall(m.work, 60, function(x) return x % 7 + 1 end)
	assert(ok)
	total = total + n + #m.name("module") + select("#", ("a b c d"):byte(1, -1))
end
print(#result, total, tostring(sum))
