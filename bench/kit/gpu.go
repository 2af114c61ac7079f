package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/kvgate/kvgate/clock"
)

// queries are what is asked of nvidia-smi, which comes with the driver: those that
// change first, and from steady on those that do not. Source: nvidia-smi
// --help-query-gpu. The reasons had another name before driver 535.
var queries = []string{"clocks.sm", "clocks.mem", "temperature.gpu", "power.draw", "pstate", "clocks_event_reasons.active",
	"driver_version", "clocks.max.sm", "clocks.max.mem", "power.limit", "ecc.mode.current", "mig.mode.current", "memory.used"}

const (
	oldReasons = "clocks_throttle_reasons.active"
	steady     = 6
)

// reasons are the bits of why clocks are low. Source: nvml.h, nvmlClocksEventReasons.
var reasons = []string{"idle", "application clocks", "software power cap", "hardware slowdown", "sync boost", "software thermal slowdown",
	"hardware thermal slowdown", "hardware power brake", "display clocks"}

// Range is a clock, a temperature or a power over some time.
type Range struct{ Min, Median, Max float64 }

// Clocks is the device's state while a part ran, by nvidia-smi.
type Clocks struct {
	Samples     int      `json:"samples"`
	SM          Range    `json:"sm_mhz"`
	Memory      Range    `json:"memory_mhz"`
	Temperature Range    `json:"temperature_c"`
	Power       Range    `json:"power_w"`
	States      []string `json:"pstates,omitempty"`
	Reasons     []string `json:"throttle_reasons,omitempty"` // that clocks were low for
	Missing     string   `json:"missing,omitempty"`          // why there are no samples
}

func (c *Clocks) String() string {
	if c.Missing != "" {
		return "clocks unknown: " + c.Missing
	}
	low := "none"
	if len(c.Reasons) > 0 {
		low = strings.Join(c.Reasons, ", ")
	}
	return fmt.Sprintf("%d samples meanwhile: SM clock %.0f to %.0f MHz (median %.0f), memory clock %.0f to %.0f, %s, up to %.0f C and %.0f W; clocks low for: %s",
		c.Samples, c.SM.Min, c.SM.Max, c.SM.Median, c.Memory.Min, c.Memory.Max, strings.Join(c.States, " "), c.Temperature.Max, c.Power.Max, low)
}

// sampler has one nvidia-smi tell of the device every 200 ms.
type sampler struct {
	clk clock.Clock
	cmd *exec.Cmd

	mu      sync.Mutex
	samples [][]string // since the last call of take
	first   []string
	missing string
	ended   bool
}

// smiPlaces are where nvidia-smi may be: beside the places of libcuda.
var smiPlaces = []string{"nvidia-smi", "/usr/local/nvidia/bin/nvidia-smi", "/usr/lib/wsl/lib/nvidia-smi"}

// firstAnswer is how long nvidia-smi may take to answer first.
const firstAnswer = 15 * time.Second

// startSampler starts it, for the device that the parts open: the first that
// CUDA_VISIBLE_DEVICES names, by number or UUID, or the first in the order of PCI.
func startSampler(clk clock.Clock, env []string) *sampler {
	s := &sampler{clk: clk, missing: "nvidia-smi has not answered"}
	s.start(env, queries)
	return s
}

func (s *sampler) start(env, ask []string) {
	args := []string{"--query-gpu=" + strings.Join(ask, ","), "--format=csv,noheader,nounits", "-lms", "200"}
	id := "0" // CUDA and nvidia-smi count alike: see environment
	for _, e := range env {
		if v, ok := strings.CutPrefix(e, "CUDA_VISIBLE_DEVICES="); ok && v != "" {
			id, _, _ = strings.Cut(v, ",")
		}
	}
	args = append(args, "--id="+id)
	program := smiPlaces[0]
	for _, place := range smiPlaces {
		if path, err := exec.LookPath(place); err == nil {
			program = path
			break
		}
	}
	cmd := exec.Command(program, args...)
	cmd.Env, cmd.SysProcAttr = env, &syscall.SysProcAttr{Setpgid: true}
	out, err := cmd.StdoutPipe() // without a reader it ends
	if err == nil {
		cmd.Stderr = cmd.Stdout
		err = cmd.Start()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		s.missing, s.ended = "nvidia-smi: "+err.Error(), true
		return
	}
	s.cmd = cmd
	s.clk.Go("nvidia-smi", func() { s.read(cmd, out, env, ask) })
}

func (s *sampler) read(cmd *exec.Cmd, out io.Reader, env, ask []string) {
	lines := bufio.NewScanner(out)
	said := ""
	for lines.Scan() {
		f := strings.Split(lines.Text(), ",")
		if len(f) != len(queries) {
			said = lines.Text()
			continue
		}
		for i := range f {
			f[i] = strings.TrimSpace(f[i])
		}
		s.mu.Lock()
		first := s.first == nil
		if first {
			s.first = f
		}
		s.samples = append(s.samples, f)
		s.mu.Unlock()
		if first {
			s.clk.Notify()
		}
	}
	err := cmd.Wait()
	if strings.Contains(said, "clocks_event_reasons") && slices.Contains(ask, "clocks_event_reasons.active") {
		old := slices.Clone(ask)
		old[slices.Index(ask, "clocks_event_reasons.active")] = oldReasons
		s.start(env, old)
		return
	}
	s.mu.Lock()
	s.missing, s.ended = fmt.Sprintf("nvidia-smi ended: %v: %s", err, said), true
	s.mu.Unlock()
	s.clk.Notify()
}

// ready waits for the first answer, not longer than that.
func (s *sampler) ready(limit time.Duration) {
	answered := clock.Func("the first answer of nvidia-smi", func() bool { s.mu.Lock(); defer s.mu.Unlock(); return s.first != nil || s.ended })
	_ = s.clk.WaitUntil(context.Background(), answered, s.clk.Now()+limit)
}

// take returns what there was since the last call.
func (s *sampler) take() *Clocks {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := &Clocks{Samples: len(s.samples)}
	if c.Samples == 0 {
		c.Missing = s.missing
		return c
	}
	states, low := map[string]bool{}, map[string]bool{}
	for i, to := range []*Range{&c.SM, &c.Memory, &c.Temperature, &c.Power} {
		var v []float64
		for _, f := range s.samples {
			if x, err := strconv.ParseFloat(f[i], 64); err == nil {
				v = append(v, x)
			}
		}
		if slices.Sort(v); len(v) > 0 {
			*to = Range{v[0], v[len(v)/2], v[len(v)-1]}
		}
	}
	for _, f := range s.samples {
		states[f[4]] = true
		mask, err := strconv.ParseUint(strings.TrimPrefix(f[5], "0x"), 16, 64)
		if err != nil {
			low[f[5]] = true
		}
		for i, r := range reasons {
			if mask>>i&1 != 0 {
				low[r] = true
			}
		}
	}
	c.States, c.Reasons = slices.Sorted(maps.Keys(states)), slices.Sorted(maps.Keys(low))
	s.samples = nil
	return c
}

// steadyValues is what does not change.
func (s *sampler) steadyValues() map[string]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.first == nil {
		return nil
	}
	v := map[string]string{}
	for i, q := range queries[steady:] {
		v[q] = s.first[steady+i]
	}
	return v
}

func (s *sampler) stop() {
	s.mu.Lock()
	if s.cmd != nil && !s.ended {
		_ = unix.Kill(-s.cmd.Process.Pid, unix.SIGKILL)
	}
	s.mu.Unlock()
	ended := clock.Func("the end of nvidia-smi", func() bool { s.mu.Lock(); defer s.mu.Unlock(); return s.ended })
	_ = s.clk.WaitUntil(context.Background(), ended, s.clk.Now()+reapTime)
}

// holder is a process that keeps a context for the whole run, so that nothing has the
// driver initialise the GPU again, and its clocks stay up.
type holder struct {
	clk    clock.Clock
	until  string // a file: when it is there, the process ends
	ended  chan outcome
	cancel context.CancelFunc
}

func startHolder(clk clock.Clock, dir, logs string, env []string, limit time.Duration) *holder {
	ctx, cancel := context.WithCancel(context.Background())
	h := &holder{clk: clk, until: filepath.Join(logs, "over"), ended: make(chan outcome, 1), cancel: cancel}
	c := command{path: filepath.Join(dir, "bin", "driver.test"), args: []string{"-test.run", "^TestHoldOnGPU$", "-test.v"}, dir: dir,
		env: append(slices.Clone(env), "KVGATE_HOLD_UNTIL="+h.until), log: filepath.Join(logs, "hold.log"), limit: limit}
	clk.Go("hold the device", func() {
		h.ended <- execute(ctx, clk, c)
		clk.Notify()
	})
	return h
}

// end has the context given back, and returns why it was not held all the time.
func (h *holder) end() string {
	defer h.cancel()
	if len(h.ended) > 0 {
		o := <-h.ended
		return "the context was not held: the process ended early: " + o.reason
	}
	over := clock.Func("the end of the holder", func() bool { return len(h.ended) > 0 })
	if err := os.WriteFile(h.until, nil, 0o666); err == nil && h.clk.WaitUntil(context.Background(), over, h.clk.Now()+reapTime) == nil {
		if o := <-h.ended; o.reason != "" {
			return "the process that held the context: " + o.reason
		}
		return ""
	}
	h.cancel()
	_ = h.clk.WaitUntil(context.Background(), over, h.clk.Now()+overtime)
	return "the process that held the context did not end by itself"
}
