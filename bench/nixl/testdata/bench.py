"""What a transfer costs a Python program, through NVIDIA's own binding: reads
numbers of descriptors, one a line, and answers each with "phase nanoseconds"
pairs."""
import ctypes
import importlib.util
import mmap
import sys
from time import perf_counter_ns as now

BYTES, MOST, BATCHES, ASKS = 4096, 512, 20, 32

spec = importlib.util.spec_from_file_location("_bindings", sys.argv[1])
nixl = importlib.util.module_from_spec(spec)
spec.loader.exec_module(nixl)


def agent(name, addr):
    config = nixl.nixlAgentConfig()
    config.useProgThread = True
    config.pthrDelay = 1000  # else it spins
    config.syncMode = nixl.NIXL_THREAD_SYNC_RW
    a = nixl.nixlAgent(name, config)
    params, _ = a.getPluginParams("UCX")
    a.createBackend("UCX", params)
    regions = nixl.nixlRegDList(nixl.DRAM_SEG)
    regions.addDesc((addr, MOST * BYTES, 0, ""))
    a.registerMem(regions, [])
    return a


memory = mmap.mmap(-1, 2 * MOST * BYTES)
local = ctypes.addressof(ctypes.c_char.from_buffer(memory))
remote = local + MOST * BYTES
a, b = agent("py-a", local), agent("py-b", remote)
a.loadRemoteMD(b.getLocalMD())


def make(n):
    left, right = nixl.nixlXferDList(nixl.DRAM_SEG), nixl.nixlXferDList(nixl.DRAM_SEG)
    for i in range(n):
        left.addDesc((local + i * BYTES, BYTES, 0))
        right.addDesc((remote + i * BYTES, BYTES, 0))
    return a.createXferReq(nixl.NIXL_READ, left, right, "py-b")


def finish(request):
    while a.getXferStatus(request) == nixl.NIXL_IN_PROG:
        pass


def measure(n):
    best = {}

    def note(phase, start, count):
        best[phase] = min(best.get(phase, float("inf")), (now() - start) / count)
        return now()

    batch = max(64 // n, 8)
    for _ in range(BATCHES):
        t = now()
        requests = [make(n) for _ in range(batch)]
        t = note("make", t, batch)
        for r in requests:
            a.postXferReq(r)
        t = note("post", t, batch)
        for r in requests:
            finish(r)
        t = note("finish", t, batch)
        for r in requests:
            for _ in range(ASKS):
                a.getXferStatus(r)
        t = note("status", t, batch * ASKS)
        for r in requests:
            a.releaseXferReq(r)
        note("release", t, batch)
    r = make(n)
    for _ in range(BATCHES):
        t = now()
        for _ in range(batch):
            a.postXferReq(r)
            finish(r)
        note("repost", t, batch)
    a.releaseXferReq(r)
    return best


for line in sys.stdin:
    print(*(f"{k} {v}" for k, v in measure(int(line)).items()), flush=True)
del a, b
