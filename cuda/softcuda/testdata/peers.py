"""Two devices in NVIDIA's own Python client: copies between them, access to each
other's memory, a wait of one for the other's event.

    peers.py
"""
from cuda.bindings import driver as cu

SIZE = 1 << 20


def ok(result):
    code, *values = result
    if code != cu.CUresult.CUDA_SUCCESS:
        raise SystemExit(f"peers: {code!r}")
    return values[0] if values else None


def download(p, n):
    data = bytearray(n)
    ok(cu.cuMemcpyDtoH(data, p, n))
    return data


ok(cu.cuInit(0))
assert ok(cu.cuDeviceGetCount()) == 2
devices = [ok(cu.cuDeviceGet(i)) for i in range(2)]
contexts = [ok(cu.cuDevicePrimaryCtxRetain(d)) for d in devices]
memory, streams = [], []
for i, c in enumerate(contexts):
    ok(cu.cuCtxSetCurrent(c))
    assert int(ok(cu.cuCtxGetDevice())) == i
    memory.append(ok(cu.cuMemAlloc(SIZE)))
    streams.append(ok(cu.cuStreamCreate(1)))
    ok(cu.cuMemsetD8(memory[i], 0x10 + i, SIZE))
    ok(cu.cuCtxSynchronize())
event = ok(cu.cuEventCreate(2))  # of the second device

assert ok(cu.cuDeviceCanAccessPeer(*devices)) == 1
assert ok(cu.cuDeviceCanAccessPeer(devices[0], devices[0])) == 0
attribute = cu.CUdevice_P2PAttribute.CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED
assert ok(cu.cuDeviceGetP2PAttribute(attribute, *devices)) == 1

ok(cu.cuCtxSetCurrent(contexts[0]))
assert cu.cuCtxEnablePeerAccess(contexts[0], 0)[0] == cu.CUresult.CUDA_ERROR_INVALID_DEVICE
ok(cu.cuCtxEnablePeerAccess(contexts[1], 0))
assert cu.cuCtxEnablePeerAccess(contexts[1], 0)[0] == cu.CUresult.CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED
ok(cu.cuMemsetD8Async(int(memory[1]) + 4096, 0x33, 100, streams[0]))
ok(cu.cuStreamSynchronize(streams[0]))
ok(cu.cuCtxDisablePeerAccess(contexts[1]))
assert cu.cuCtxDisablePeerAccess(contexts[1])[0] == cu.CUresult.CUDA_ERROR_PEER_ACCESS_NOT_ENABLED

# The first device's stream waits for the second's event, then fetches what is there.
ok(cu.cuMemsetD8Async(memory[1], 0x44, 100, streams[1]))
ok(cu.cuEventRecord(event, streams[1]))
assert cu.cuEventRecord(event, streams[0])[0] == cu.CUresult.CUDA_ERROR_INVALID_HANDLE
ok(cu.cuStreamWaitEvent(streams[0], event, 0))
ok(cu.cuMemcpyPeerAsync(memory[0], contexts[0], memory[1], contexts[1], SIZE - 8, streams[0]))
ok(cu.cuStreamSynchronize(streams[0]))
want = bytearray(b"\x44" * 100 + b"\x11" * 3996 + b"\x33" * 100 + b"\x11" * (SIZE - 4204) + b"\x10" * 8)
assert download(memory[0], SIZE) == want
assert cu.cuMemcpyPeer(memory[0], contexts[1], memory[1], contexts[0], 8)[0] == cu.CUresult.CUDA_ERROR_INVALID_VALUE
ok(cu.cuMemcpyPeer(memory[1], contexts[1], memory[0], contexts[0], SIZE))
ok(cu.cuCtxSetCurrent(contexts[1]))
assert download(memory[1], SIZE) == want
print("peers: two devices did what they should")
