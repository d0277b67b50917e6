package buildsystems

import (
	"testing"
)

// TestBuildSystems builds the project with each build system.
func TestBuildSystems(t *testing.T) {
	const launchers = `-DCMAKE_C_COMPILER_LAUNCHER="braid;cc" -DCMAKE_CXX_COMPILER_LAUNCHER="braid;cc" ` +
		`-DCMAKE_C_LINKER_LAUNCHER="braid;cc" -DCMAKE_CXX_LINKER_LAUNCHER="braid;cc"`
	for _, s := range []struct{ name, build, program string }{
		{"make", `make -j16 CC="braid cc gcc" CXX="braid cc g++"`, "./pantry"},
		{"make clang", `make -j16 CC="braid cc clang" CXX="braid cc clang++"`, "./pantry"},
		{"CMake launcher make", `cmake -S . -B out ` + launchers + `; make -C out -j16`, "out/pantry"},
		{"CMake launcher Ninja", `cmake -G Ninja -S . -B out ` + launchers + `; ninja -C out -j16`, "out/pantry"},
		{"CMake launcher clang", `CC=clang CXX=clang++ cmake -G Ninja -S . -B out ` + launchers + `; ninja -C out -j16`, "out/pantry"},
		// As the NDK's android.toolchain.cmake sets things up: clang, told its target; found where it says; launchers besides.
		{"CMake toolchain file", `printf '%s\n' 'set(CMAKE_SYSTEM_NAME Linux)' 'set(CMAKE_SYSTEM_PROCESSOR x86_64)' \
			'foreach(L C CXX)' 'set(CMAKE_${L}_COMPILER_TARGET x86_64-linux-gnu)' 'set(CMAKE_${L}_FLAGS_INIT "-fPIC -fstack-protector-strong")' \
			'endforeach()' 'set(CMAKE_C_COMPILER clang)' 'set(CMAKE_CXX_COMPILER clang++)' 'set(CMAKE_CROSSCOMPILING_EMULATOR env)' >phone.cmake
			cmake -G Ninja -S . -B out -DCMAKE_TOOLCHAIN_FILE=phone.cmake ` + launchers + `; ninja -C out -j16`, "out/pantry"},
		{"CMake compiler make", `CC="braid cc gcc" CXX="braid cc g++" cmake -S . -B out; make -C out -j16`, "out/pantry"},
		{"CMake compiler Ninja", `CC="braid cc clang" CXX="braid cc clang++" cmake -G Ninja -S . -B out; ninja -C out -j16`,
			"out/pantry"},
		{"CMake list as compiler",
			`cmake -S . -B out -DCMAKE_C_COMPILER="braid;cc;gcc" -DCMAKE_CXX_COMPILER="braid;cc;g++"; make -C out -j16`, "out/pantry"},
		{"autotools", `autoreconf -fi; mkdir out; cd out; ../configure CC="braid cc gcc" CXX="braid cc g++"; make -j16`, "out/pantry"},
		{"Meson", `CC="braid cc gcc" CXX="braid cc g++" meson setup out; ninja -C out -j16`, "out/pantry"},
		{"Meson clang", `CC="braid cc clang" CXX="braid cc clang++" meson setup out; ninja -C out -j16`, "out/pantry"},
	} {
		t.Run(s.name, func(t *testing.T) {
			p := newProject(t, "a project's $place")
			if s.name == "autotools" { // make takes no such names
				p = newProject(t, "project")
			}
			p.run(s.build)
			p.check(s.program)
			p.noLitter()
		})
	}
}
