-- Strings and patterns, files, the system; children by popen and execute.
local short = arg[1] == "short"

local text = ("the quick brown fox jumps over the lazy dog. "):rep(short and 3 or 200)
local words, n = {}, 0
for w in text:gmatch("%a+") do words[w] = (words[w] or 0) + 1; n = n + 1 end
local keys = {}; for k, v in pairs(words) do keys[#keys + 1] = k .. "=" .. v end
table.sort(keys)
print("words", n, table.concat(keys, " "))
print("find", text:find("fox", 1, true), text:find("(l%a+) (d%a+)"), ("x"):find("y"), ("a.b"):find(".", 1, true))
print("match", ("2024-02-29"):match("(%d+)-(%d+)-(%d+)"), ("[[x]]"):match("%b[]"), ("THE (quick) fox"):find("%((%a+)%)"), ("hello"):match("^(h)(.-)(l+)"), ("f0o"):match("%f[%d]%d"))
print("gsub", ("hello world"):gsub("o", "0"), ("abc"):gsub("%w", "%0%0"), ("$name is $age"):gsub("%$(%w+)", {name = "Bob", age = 42}), ("abc"):gsub("", "-"))
print("backtracking", (("a"):rep(short and 15 or 22) .. "b"):match("^(a-)*b$"), (("a"):rep(20)):match(("a-"):rep(8) .. "$") ~= nil)
print("format", ("%d %5.2f %s %q %x %g %-5s| %05d %c %i %%"):format(42, 3.14159, "s", 'a"\n', 255, 1e20, "ab", 42, 65, 7), ("%a"):format(1.0))
print("pack", ("<i2 >I4 z s1 d"):len(), string.unpack("<i2 >I4 z s1", string.pack("<i2 >I4 z s1", -2, 7, "zero", "one")), string.packsize("i4 i8"))
print("bytes", ("ABC"):byte(1, -1), string.char(72, 105), ("abc"):reverse(), ("aBc"):upper(), ("x"):rep(3, ","), #("\u{7FFFFFFF}"))
print("utf8", utf8.len("häß€"), utf8.codepoint("€"), utf8.offset("häß", 3), #utf8.char(0x20AC, 0x10FFFF))
for p, c in utf8.codes("aé") do io.write(p, "=", c, " ") end print()
print("numbers", tostring(1e100), 2^53, tonumber("0x1p4"), tonumber("z", 36), tonumber("8", 8), math.floor(-3.5), math.ceil(3.2), math.fmod(-7, 3), math.ult(1, -1), 10 // 0.0, -(0/0) ~= -(0/0))

local name = os.tmpname()
local f = assert(io.open(name, "w"))
f:setvbuf("full", 1024)
for i = 1, short and 50 or 5000 do f:write(i, " ", i / 4, "\n") end
print("seek", f:seek("cur") > 0, f:seek("set", 0), f:close(), io.type(f))
local lines, sum = 0, 0
for l in io.lines(name) do lines = lines + 1 end
for a, b in io.lines(name, "n", "n") do sum = sum + a + b end
f = io.open(name); print("read", lines, sum, f:read("n", "l", "L", 3)); f:close()
print("append", assert(io.open(name, "a")):write("x"):close(), #io.open(name, "rb"):read("a") > 100)
print("missing", io.open("/nonexistent/x"), pcall(io.lines, "/nonexistent/x"))
print("rename", os.rename(name, name .. ".2"), os.remove(name .. ".2"), (os.remove(name)))
print("system", os.getenv("NO_SUCH_VARIABLE"), os.getenv("PATH") ~= nil, os.time({year = 2000, month = 1, day = 1, hour = 12}) > 0, os.date("!%Y-%m-%d", 86400), type(os.clock()), os.difftime(5, 3))
io.stdout:flush()
if not short then -- callgrind's profile is of one process
  print("execute", os.execute("exit 3"))
  local p = io.popen("echo from a child; exit 4"); print("popen", p:read("a"), p:close())
  p = io.popen("cat >/dev/null", "w"); p:write(text); print("popen", p:close())
end
print("done")
