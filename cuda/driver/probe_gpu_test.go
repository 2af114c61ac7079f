//go:build cgo && linux

package driver_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/clock"
	"github.com/kvgate/kvgate/cuda"
	"github.com/kvgate/kvgate/cuda/cudatest"
	"github.com/kvgate/kvgate/cuda/driver"
	"github.com/kvgate/kvgate/internal/abi"
)

// deviceFacts is what TestProbeOnGPU logs behind "device: ", as JSON. bench/kit
// reads it.
type deviceFacts struct {
	Name       string `json:"name"`
	Simulated  bool   `json:"simulated"`
	Library    string `json:"library"`
	Driver     string `json:"driver"` // the CUDA version that the library supports
	Capability [2]int `json:"capability"`
	SMs        int    `json:"sms"`
	Memory     uint64 `json:"memory_bytes"`
	Bandwidth  uint64 `json:"bandwidth_bytes_per_s"` // of its memory, by clock and bus; 0 unknown
	PCI        string `json:"pci,omitempty"`
	UUID       string `json:"uuid,omitempty"`
	RDMA       string `json:"rdma"`
}

// attributes are the CU_DEVICE_ATTRIBUTE_* that the driver's code goes by, and
// those about words and registered memory.
var attributes = map[int]string{1: "threads per block", 2: "block x", 3: "block y", 4: "block z", 5: "grid x", 6: "grid y", 7: "grid z",
	8: "shared memory", 16: "multiprocessors", 36: "memory clock, kHz", 37: "memory bus, bits", 41: "unified addressing",
	75: "capability, major", 76: "capability, minor", 88: "reaches pageable memory", 89: "managed memory beside the host",
	91: "registered memory by the host's pointer", 92: "words of streams", 93: "words of 64 bits", 94: "waits for a word by NOR",
	97: "shared memory on request", 98: "flushes writes of others", 116: "GPUDirect RDMA", 117: "ways to flush RDMA writes",
	118: "order of RDMA writes"}

// TestProbeOnGPU says what the device is, and how long the first call of each kind
// takes.
func TestProbeOnGPU(t *testing.T) {
	clk := clock.Wall()
	start := clk.Now()
	d := openGPU(t)
	opened := clk.Now() - start
	defer closeLast(t, d)
	i, rdma := d.Info(), d.RDMA()
	f := deviceFacts{Name: i.Name, Simulated: i.Simulated, Library: d.Library(), Driver: abi.CUDA(i.Driver).String(),
		Capability: i.Capability, SMs: i.SMs, Memory: i.Memory, Bandwidth: i.Bandwidth}
	text, err := json.Marshal(rdma)
	require.NoError(t, err)
	f.RDMA = string(text)
	var errs [2]error
	f.PCI, errs[0] = d.PCIAddress()
	f.UUID, errs[1] = d.UUID()
	if err := errors.Join(errs[:]...); err != nil {
		t.Logf("%s%v", cudatest.Observed, err) // the driver is too old to tell
	}
	text, err = json.Marshal(f)
	require.NoError(t, err)
	t.Logf("device: %s", text)
	for n := range 119 {
		if name, ok := attributes[n]; ok {
			v, err := d.Attribute(n)
			if err != nil {
				t.Logf("%sattribute %d, %s: %v", cudatest.Observed, n, name, err)
				continue
			}
			t.Logf("%sattribute %d, %s: %d", cudatest.Observed, n, name, v)
		}
	}
	label := cudatest.Observed
	if i.Simulated {
		label += "simulated: "
	}
	t.Logf("%sfirst open of a device: %v", label, opened)
	firstCalls(t, d, label)
}

// idleKernel is a kernel that does nothing.
const idleKernel = ".version 7.8\n.target sm_70\n.address_size 64\n.visible .entry idle()\n{\n\tret;\n}\n"

func loadIdle(d *driver.Device) (cuda.Function, error) {
	m, err := d.LoadModule([]byte(idleKernel))
	if err != nil {
		return 0, err
	}
	return d.Function(m, "idle")
}

func launchIdle(b *cuda.Batch, s cuda.Stream, f cuda.Function) {
	b.Launch(s, f, cuda.Geometry{Grid: [3]uint32{132, 1, 1}, Block: [3]uint16{256, 1, 1}}, 0)
}

// firstCalls does things twice and logs how long the host took until each was
// over.
func firstCalls(t *testing.T, d *driver.Device, label string) {
	clk := d.Clock()
	s, err := d.NewStream(cuda.StreamOptions{})
	require.NoError(t, err)
	p, err := d.Alloc(1<<20, cuda.AllocOptions{Name: "first calls"})
	require.NoError(t, err)
	var b cuda.Batch
	run := func(build func(b *cuda.Batch)) func() error {
		return func() error {
			b.Reset()
			build(&b)
			if err := d.Submit(&b); err != nil {
				return err
			}
			return d.SyncStream(t.Context(), s)
		}
	}
	var kernel cuda.Function
	for _, c := range []struct {
		what string
		do   func() error
	}{
		{"module", func() (err error) { kernel, err = loadIdle(d); return err }},
		{"launch", run(func(b *cuda.Batch) { launchIdle(b, s, kernel) })},
		{"fill with bytes", run(func(b *cuda.Batch) { b.Fill8(s, p, 0, 1<<20) })},
		{"fill with words", run(func(b *cuda.Batch) { b.Fill32(s, p, 0, 1<<18) })},
		{"copy", run(func(b *cuda.Batch) { b.Copy(s, p, p+1<<19, 1<<19) })},
		{"write of a word", run(func(b *cuda.Batch) { b.WriteWord(s, p, 1) })},
		{"wait for a word", run(func(b *cuda.Batch) { b.WaitWord(s, p, 1) })},
		{"allocation of 2 MiB", func() error {
			q, err := d.Alloc(2<<20, cuda.AllocOptions{Name: "first"})
			if err != nil {
				return err
			}
			return d.Free(q)
		}},
		{"pinned memory of 1 MiB", func() error {
			h, err := d.AllocPinned(1<<20, cuda.AllocOptions{Name: "first"})
			if err != nil {
				return err
			}
			return d.FreePinned(h)
		}},
		{"host function", func() error {
			f, err := d.NewSignal()
			if err != nil {
				return err
			}
			return errors.Join(run(func(b *cuda.Batch) { b.Signal(s, f, 0) })(), d.DestroyHostFunc(f))
		}},
		{"graph", func() error {
			if err := d.BeginCapture(s, cuda.CaptureRelaxed); err != nil {
				return err
			}
			b.Reset()
			launchIdle(&b, s, kernel)
			err := d.Submit(&b)
			g, ended := d.EndCapture(s)
			if err := errors.Join(err, ended); err != nil {
				return err
			}
			e, err := d.Instantiate(g)
			if err != nil {
				return err
			}
			return errors.Join(run(func(b *cuda.Batch) { b.LaunchGraph(s, e) })(), d.DestroyGraphExec(e), d.DestroyGraph(g))
		}},
	} {
		var took [2]time.Duration
		for i := range took {
			start := clk.Now()
			if err := c.do(); errors.Is(err, cuda.ErrNotSupported) {
				t.Logf("observation: first %s: %v", c.what, err)
				took[1] = -1
				break
			} else if err != nil {
				t.Errorf("%s: %v", c.what, err)
				break
			}
			took[i] = clk.Now() - start
		}
		if took[1] < 0 {
			continue
		}
		t.Logf("%sfirst %s: %v, the second %v", label, c.what, took[0], took[1])
	}
	require.NoError(t, d.Sync(t.Context()))
}

// holdUntil names a file: TestHoldOnGPU keeps the device open until it is there,
// or the process that started this one has gone.
const holdUntil = "KVGATE_HOLD_UNTIL"

// TestHoldOnGPU keeps a context, so that whoever comes meanwhile finds a device
// that is initialised and whose clocks are up. It does nothing but wait, and is
// for a process of its own.
func TestHoldOnGPU(t *testing.T) {
	until := os.Getenv(holdUntil)
	if until == "" {
		t.Skip("needs a GPU to be held for others: " + holdUntil + " is not set")
	}
	d := openGPU(t)
	defer closeLast(t, d)
	parent := os.Getppid()
	for {
		if _, err := os.Stat(until); err == nil || os.Getppid() != parent {
			return
		}
		require.NoError(t, d.Clock().Sleep(context.Background(), 50*time.Millisecond))
	}
}
