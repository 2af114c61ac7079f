package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/kvgate/kvgate/bench/kit/internal/proc"
	"github.com/kvgate/kvgate/bench/kit/internal/report"
	"github.com/kvgate/kvgate/clock"
)

// revision and modified are set by the linker (see scripts/gpu-kit.sh): Go's own
// stamp is there in some builds only.
var revision, modified = "unknown", "true"

// build says what this program was made from.
func build() report.Build {
	return report.Build{Revision: revision, Modified: modified != "false", Go: runtime.Version(),
		Target: runtime.GOOS + "/" + runtime.GOARCH, Glibc: "unknown"}
}

// host says what machine this is. What can't be told stays empty.
func host() report.Host {
	h := report.Host{CPUs: runtime.NumCPU(), GOMAXPROCS: runtime.GOMAXPROCS(0)}
	var u unix.Utsname
	if unix.Uname(&u) == nil {
		h.Kernel = string(bytes.TrimRight(u.Release[:], "\x00"))
	}
	if text, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		h.CPU = field(string(text), "model name")
	}
	if text, err := os.ReadFile("/proc/meminfo"); err == nil {
		kib, _ := strconv.Atoi(strings.TrimSuffix(field(string(text), "MemTotal"), " kB"))
		h.MemoryMiB = kib >> 10
	}
	return h
}

// field returns the value of the first line "name : value".
func field(text, name string) string {
	for line := range strings.Lines(text) {
		if k, v, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(k) == name {
			return strings.TrimSpace(v)
		}
	}
	return ""
}

// kernelDriver returns the version of the driver in the kernel.
func kernelDriver() string {
	text, err := os.ReadFile("/sys/module/nvidia/version")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}

// smiLimit is how long nvidia-smi may take.
const smiLimit = 3 * time.Second

// smi asks nvidia-smi for the state of the device: of the first that it tells
// of, which is the one that was opened where CUDA_VISIBLE_DEVICES is unset or
// names numbers or UUIDs.
type smi struct {
	clk  clock.Clock
	out  string // where its answer goes
	env  []string
	path string // empty until it is found
	slow bool   // it took too long: it is not asked again
}

func (s *smi) ask(ctx context.Context) *report.GPUState {
	missing := func(why string) *report.GPUState { return &report.GPUState{Missing: why} }
	if s.slow {
		return missing("nvidia-smi took too long before")
	}
	if s.path == "" {
		path, err := exec.LookPath("nvidia-smi")
		if err != nil {
			return missing("nvidia-smi is not there")
		}
		s.path = path
	}
	args := []string{"--query-gpu=" + strings.Join(report.Queries, ","), "--format=csv,noheader"}
	if first, _, _ := strings.Cut(os.Getenv("CUDA_VISIBLE_DEVICES"), ","); first != "" {
		args = append(args, "--id="+first)
	}
	log := filepath.Join(s.out, "nvidia-smi.log")
	o := proc.Run(ctx, s.clk, proc.Command{Path: s.path, Args: args, Env: s.env, Log: log, Limit: smiLimit})
	s.slow = o.Ending == proc.TimedOut
	text, err := os.ReadFile(log)
	if !o.OK() || err != nil {
		return missing(fmt.Sprintf("nvidia-smi: %s %s", o.Reason, end(text, 200)))
	}
	first, _, _ := strings.Cut(string(text), "\n")
	state, err := report.ParseGPUState(first)
	if err != nil {
		return missing(err.Error())
	}
	return state
}
