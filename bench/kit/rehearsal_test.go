package main

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/loadgate/core"
)

// rehearsal is the kit as on another machine: in another folder, with nothing of
// this one's environment, no Go on the path, over the simulator as libcuda.so.1.
type rehearsal struct{ kit, lib, results string }

func newRehearsal(t *testing.T) *rehearsal {
	from, lib := os.Getenv("KVGATE_KIT"), os.Getenv("KVGATE_KIT_LIBCUDA")
	if from == "" || lib == "" {
		t.Skip("needs the kit: ./build.sh kit-rehearsal builds it and runs this")
	}
	r := &rehearsal{kit: t.TempDir(), lib: lib, results: os.Getenv("KVGATE_KIT_RESULTS")}
	require.NoError(t, os.CopyFS(r.kit, os.DirFS(from)))
	return r
}

// run runs it and returns the exit status, the report, and what it says.
func (r *rehearsal) run(t *testing.T, env []string, args ...string) (int, *Report, string) {
	out := filepath.Join(t.TempDir(), "out")
	cmd := exec.Command(filepath.Join(r.kit, "run.sh"), append([]string{"-out", out}, args...)...)
	cmd.Env = append([]string{"PATH=/usr/bin:/bin", "HOME=" + r.kit}, env...)
	cmd.Dir = "/"
	said, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		require.NoError(t, err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("%s", said)
		}
	})
	// Three files, whatever happens.
	entries, err := os.ReadDir(out)
	require.NoError(t, err, "%s", said)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	require.Equal(t, []string{"parts.tar.gz", "report.json", "report.txt"}, names)
	text, err := os.ReadFile(filepath.Join(out, "report.json"))
	require.NoError(t, err)
	report, err := readReport(text)
	require.NoError(t, err)
	for _, p := range report.Parts {
		t.Logf("%-12s %-9s %6.1f s  %s", p.Name, p.Status, p.Seconds, p.Reason)
		if p.Status != notRun {
			require.Contains(t, packed(t, out), p.Name+".log")
		}
	}
	text, err = os.ReadFile(filepath.Join(out, "report.txt"))
	require.NoError(t, err)
	if r.results != "" {
		to := filepath.Join(r.results, filepath.Base(t.Name()))
		require.NoError(t, os.RemoveAll(to))
		require.NoError(t, os.CopyFS(to, os.DirFS(out)))
	}
	return cmd.ProcessState.ExitCode(), report, string(text)
}

func packed(t *testing.T, dir string) (names []string) {
	f, err := os.Open(filepath.Join(dir, "parts.tar.gz"))
	require.NoError(t, err)
	defer f.Close()
	z, err := gzip.NewReader(f)
	require.NoError(t, err)
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if err == io.EOF {
			return names
		}
		require.NoError(t, err)
		names = append(names, h.Name)
	}
}

func (r *rehearsal) soft(env ...string) []string {
	return append([]string{"LD_LIBRARY_PATH=" + r.lib}, env...)
}

// counts are units of figures that are counted, not measured, and what package
// testing adds for a benchmark that runs on this machine's CPU.
var counts = []string{"MB", "crossings", "discarded", "loads", "held-loads", "blocks", "corrupted-blocks", "ns/op", "MB/s"}

func TestRehearsal(t *testing.T) {
	r := newRehearsal(t)
	t.Run("without a driver", func(t *testing.T) {
		status, report, text := r.run(t, []string{"CUDA_VISIBLE_DEVICES=none"})
		require.Equal(t, 3, status)
		require.Equal(t, "no driver", report.Verdict)
		require.Contains(t, text, "no usable driver: ")
		require.Contains(t, report.part("live").Reason, "no usable CUDA driver")
		require.Equal(t, passed, report.part(kitPart).Status)
	})
	t.Run("a device that is simulated is none", func(t *testing.T) {
		status, _, text := r.run(t, r.soft(), "step")
		require.Equal(t, 3, status)
		require.Contains(t, text, "is a simulated device (-simulated takes it for a GPU)")
	})
	t.Run("all parts", func(t *testing.T) {
		status, report, text := r.run(t, r.soft(), "-simulated")
		if status != 0 {
			t.Log(text)
		}
		require.Zero(t, status)
		require.True(t, report.Simulated)
		require.False(t, report.Chosen)
		require.Equal(t, "passed", report.Verdict)
		require.Empty(t, report.Notes)
		require.Len(t, report.Parts, len(parts))
		require.Contains(t, text, "SIMULATED DEVICE: a rehearsal. No figure below is of any hardware.")
		require.NotEqual(t, "unknown", report.Kit.Revision)
		require.NotZero(t, report.Device.Bandwidth)
		require.Contains(t, report.part(probePart).Observations, "attribute 92, words of streams: 1")
		for _, p := range report.Parts {
			for _, row := range p.Rows {
				for unit := range row.Metrics {
					require.True(t, strings.HasPrefix(unit, "simulated-") || slices.Contains(counts, unit), "%s: %s", row.Name, unit)
				}
			}
			require.Equal(t, p.Name == kitPart, p.Clocks == nil, p.Name)
		}
		for _, mode := range core.Modes() {
			i := slices.IndexFunc(report.part("live").Rows, func(x Row) bool { return x.Name == "BenchmarkLive/"+mode.String() })
			require.GreaterOrEqual(t, i, 0, "%v", mode)
			m := report.part("live").Rows[i].Metrics
			require.Positive(t, m["blocks"])
			require.True(t, !mode.Gated() || m["corrupted-blocks"] == 0, "%v: %v", mode, m)
		}
	})
	t.Run("a device that is slow", func(t *testing.T) {
		status, report, _ := r.run(t, r.soft("KVGATE_SOFT_SLOW=20000"), "-simulated", "-limits", "0.05", "bandwidth", "gate", "conformance")
		require.Equal(t, 1, status)
		require.True(t, report.Chosen)
		require.Len(t, report.Parts, 5)
		for _, p := range report.Parts[2:] {
			require.Equal(t, late, p.Status, "%s: %s", p.Name, p.Reason)
		}
	})
	t.Run("a device that fails", func(t *testing.T) {
		status, report, text := r.run(t, r.soft("KVGATE_SOFT_FAIL=150"), "-simulated", "-limits", "0.3", "bandwidth", "step", "live", "gate")
		require.Equal(t, 1, status)
		b := report.part("bandwidth")
		require.Equal(t, failed, b.Status)
		good, bad := 0, 0
		for _, row := range b.Rows {
			if row.Error == "" {
				good++
			} else {
				bad++
				require.Contains(t, row.Error, "CUDA_ERROR_LAUNCH_FAILED")
			}
		}
		require.Positive(t, good, "what was measured before is kept")
		require.Positive(t, bad, "what was not has its error")
		require.Contains(t, text, "no figures: ")
		require.Contains(t, report.part("live").Text, "CUDA_ERROR_LAUNCH_FAILED")
		require.NotEqual(t, notRun, report.part("gate").Status, "the others still run")
	})
	t.Run("a device that hangs", func(t *testing.T) {
		status, report, _ := r.run(t, r.soft("KVGATE_SOFT_HANG=300"), "-simulated", "-limits", "0.1", "bandwidth", "step", "live", "conformance")
		require.Equal(t, 1, status)
		b := report.part("bandwidth")
		require.Equal(t, late, b.Status, b.Reason)
		require.NotEmpty(t, b.Rows, "what was measured before is kept")
		require.NotEmpty(t, b.Unfinished, "where it hung is told")
		for _, p := range report.Parts[2:] {
			require.Equal(t, late, p.Status, "%s: %s", p.Name, p.Reason)
		}
	})
}
