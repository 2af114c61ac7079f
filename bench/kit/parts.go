package main

import "time"

// part is one part of the kit: a program of its folder.
type part struct {
	name, what string
	program    string // in bin/, but for the first part
	dir        string // in the kit, where it runs: tests look for their testdata
	args       []string
	limit      time.Duration
	// least is how many tests have to pass, and rows how many figures there have to
	// be: who does nothing has not passed.
	least, rows int
	// plain: no test binary, but a program that prints what it likes, and lines of
	// Go's benchmark format.
	plain bool
	// Beside a simulated device a part takes these arguments too, which make it
	// shorter; and slow, if not 0, is how many times as slow as its model the device
	// is, so that a busy host is fast enough for what is tested.
	simulated []string
	slow      int
}

// The parts that come before all others, whatever is asked for.
const (
	kitPart   = "kit"
	probePart = "probe"
)

// bench are the arguments of a test binary for one run of benchmarks.
func bench(pattern, time string) []string {
	return []string{"-test.run", "^$", "-test.bench", pattern, "-test.benchtime", time}
}

// parts are run in this order. What is most wanted comes first: up to live it takes
// less than 5 minutes, and all of it less than 8, even if each part has to be killed;
// tests see to it. What kills a context comes last, in processes of its own.
var parts = []part{
	{name: kitPart, what: "the kit's files are as they were packed", program: "sha256sum", args: []string{"--check", "--quiet", "SHA256SUMS"},
		plain: true, limit: 5 * time.Second},
	{name: probePart, what: "what the device is, and what first calls take", program: "driver.test",
		args: []string{"-test.run", "^TestProbeOnGPU$"}, limit: 30 * time.Second, least: 1},
	{name: "bandwidth", what: "what the kernels move, beside the driver's fills", program: "kernels.test",
		args: bench("^Benchmark(Bandwidth|Tiles)$", "1x"), limit: 55 * time.Second, rows: 30},
	{name: "beside", what: "zeroing beside the stand-in's forward pass", program: "standin.test",
		args: bench("ZeroBeside", "1x"), limit: 10 * time.Second, rows: 3},
	{name: "wake", what: "how late waiters and held loads are, by the way to wait", program: "driver.test",
		args: bench("WakeOnGPU", "1x"), limit: 40 * time.Second, rows: 2, slow: 100},
	{name: "step", what: "what a step through the gate costs the host", program: "loadgate.test",
		args: bench("StepOnDevice", "1x"), limit: 12 * time.Second, rows: 2},
	{name: "costs", what: "what single calls cost the host", program: "driver.test",
		args: bench("CostsOnGPU", "1x"), limit: 10 * time.Second, rows: 14},
	{name: "live", what: "ordering modes of the gate under a stand-in for a model, with another process as the NIC", program: "live",
		args: []string{"-bench", "-for", "5s"}, simulated: []string{"-for", "300ms", "-rounds", "1"}, plain: true,
		limit: 55 * time.Second, rows: 14},
	{name: "kernels", what: "tests of the kernels: bytes compared with plain Go", program: "kernels.test", dir: "kernels",
		limit: 55 * time.Second, least: 20},
	{name: "gate", what: "the gate on this device: the race in each mode, and a soak, contents checked", program: "loadgate.test",
		args: []string{"-test.run", "OnDevice"}, limit: 35 * time.Second, least: 8, slow: 100},
	{name: "benchmarks", what: "benchmarks of the kernels", program: "kernels.test",
		args: bench("^BenchmarkKernels$", "50ms"), simulated: []string{"-test.benchtime", "1x"}, limit: 25 * time.Second, rows: 6},
	{name: "conformance", what: "behaviours that every device shows alike, polled and watched", program: "driver.test",
		args: []string{"-test.run", "^Test(Conformance|FillRows).*OnGPU"}, limit: 80 * time.Second, least: 60, slow: 500},
}

// mostTime is how long all of them may take together: who comes last gets what is
// left of it. Of that lastTime is for killing the last one, the holder and the
// sampler. firstTime is for those up to live.
const (
	mostTime  = 8 * time.Minute
	lastTime  = 2*overtime + 2*reapTime
	firstTime = 5 * time.Minute
)

// simulatedLimit is how many times as long a part may take beside a simulated device,
// which shares the CPUs with it and with others.
const simulatedLimit = 4

// environment is what every part has: cuda/auto takes the driver and nothing else, a
// missing GPU is no reason to skip, and what cuda/cudatest asks of a driver's process.
var environment = []string{"KVGATE_DRIVER=nvidia", "KVGATE_REQUIRE_GPU=1", "CUDA_MODULE_LOADING=EAGER", "CUDA_DEVICE_MAX_CONNECTIONS=32",
	"CUDA_DEVICE_ORDER=PCI_BUS_ID"} // as nvidia-smi counts
