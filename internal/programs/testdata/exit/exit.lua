-- Ends in os.exit, from within coroutines and protected calls: Lua's functions never return.
local co = coroutine.wrap(function()
  pcall(function()
    print("done")
    os.exit(tonumber(arg[1]) or 7, arg[2] == "close")
  end)
end)
co()
