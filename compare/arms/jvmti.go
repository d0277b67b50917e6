package arms

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"

	"braid/compare/arm"
	"braid/compare/result"
	"braid/compare/workload"
)

// JVMTI: a Java machine calls an agent at entries and returns of methods. It stands for Android's own method tracing, and is
// compared with the same program without the agent.
func init() {
	for i, title := range []string{"JVM, no agent", "JVMTI, method events"} {
		traced := i == 1
		a := &arm.Arm{
			Name: "jvm-baseline", Title: title, Group: result.GroupExternal, Order: 60 + i,
			Workloads: []string{workload.Listing, workload.Call},
			Check: func(context.Context, *arm.Env) error {
				_, err := javaHome()
				return err
			},
			Open: func(ctx context.Context, env *arm.Env, w arm.Work) (arm.Session, error) {
				return openJVM(ctx, env, w, traced)
			},
		}
		if traced {
			a.Name, a.Points, a.Baseline = "jvmti", 2, "jvm-baseline"
		}
		arm.Register(a)
	}
}

const javaPackage = "default-jdk-headless"

// javaHome returns the folder of the JDK whose commands are in the PATH.
func javaHome() (string, error) {
	if err := missing(need{"javac", javaPackage}, need{"java", javaPackage}, need{"gcc", "gcc"}); err != nil {
		return "", err
	}
	javac, err := exec.LookPath("javac")
	if err != nil {
		return "", err
	}
	if javac, err = filepath.EvalSymlinks(javac); err != nil {
		return "", err
	}
	home := filepath.Dir(filepath.Dir(javac))
	if _, err := os.Stat(filepath.Join(home, "include/jvmti.h")); err != nil {
		return "", &arm.Unavailable{Why: "jvmti.h is not installed", Next: "apt-get install " + javaPackage}
	}
	return home, nil
}

type jvm struct {
	p      *workload.Process
	dir    string
	traced bool
}

func openJVM(ctx context.Context, env *arm.Env, w arm.Work, traced bool) (_ arm.Session, err error) {
	s := &jvm{traced: traced}
	if s.dir, err = os.MkdirTemp(env.Dir, "jvm-"); err != nil {
		return nil, err
	}
	if err := s.start(ctx, env, w); err != nil {
		return nil, errors.Join(err, os.RemoveAll(s.dir))
	}
	return s, nil
}

func (s *jvm) start(ctx context.Context, env *arm.Env, w arm.Work) error {
	home, err := javaHome()
	if err != nil {
		return err
	}
	if err := place(s.dir, "Listing.java", "jvmti.c"); err != nil {
		return err
	}
	library, include := filepath.Join(s.dir, "libjvmti.so"), filepath.Join(home, "include")
	for _, command := range [][]string{
		{"gcc", "-O2", "-shared", "-fPIC", "-I" + include, "-I" + include + "/linux", "-o", library, filepath.Join(s.dir, "jvmti.c")},
		{filepath.Join(home, "bin/javac"), "-J-XX:-UsePerfData", "-d", s.dir, filepath.Join(s.dir, "Listing.java")},
	} {
		if _, err := output(ctx, nil, command...); err != nil {
			return err
		}
	}
	// The compiler of the machine must leave a call a call, as that of the other programs does. Its own files stay in the folder.
	wrap := []string{filepath.Join(home, "bin/java"), "-cp", s.dir, "-Dlibrary=" + library, "-Xmx64m", "-XX:+UseSerialGC", "-XX:-UsePerfData",
		"-XX:ErrorFile=" + s.dir + "/error", "-XX:CompileCommand=quiet", "-XX:CompileCommand=dontinline,Listing.call"}
	if s.traced {
		wrap = append(wrap, "-agentpath:"+library)
	}
	s.p, err = env.Workloads.Start(ctx, workload.Start{Workload: w.Workload, CPU: w.CPU, Wrap: wrap, Path: "Listing"})
	return err
}

func (s *jvm) Run(_ context.Context, r workload.Request) (m arm.Measured, err error) {
	m.Reply, err = s.p.Run(r)
	if s.traced {
		m.Expected, m.Recorded = 2*uint64(m.Calls), m.Reply.Recorded
	}
	return m, err
}

func (s *jvm) Facts() map[string]string {
	if !s.traced {
		return nil
	}
	return map[string]string{"counted by": "the agent", "note": "with method events on, the machine interprets the traced thread's code"}
}

func (s *jvm) Close() error { return errors.Join(s.p.Close(), os.RemoveAll(s.dir)) }
