"""Two CUDA programs in NVIDIA's own Python client share device memory: this one
exports it, and starts itself again to write there.

    ipc.py
"""
import subprocess
import sys

from cuda.bindings import driver as cu

SIZE = 4 << 20


def ok(result):
    code, *values = result
    if code != cu.CUresult.CUDA_SUCCESS:
        raise SystemExit(f"ipc: {code!r}")
    return values[0] if values else None


def download(p, n):
    data = bytearray(n)
    ok(cu.cuMemcpyDtoH(data, p, n))
    return data


def start():
    ok(cu.cuInit(0))
    ok(cu.cuCtxSetCurrent(ok(cu.cuDevicePrimaryCtxRetain(ok(cu.cuDeviceGet(0))))))


def exporter():
    start()
    p = ok(cu.cuMemAlloc(SIZE))
    ok(cu.cuMemsetD8(p, 0x11, SIZE))
    handle = ok(cu.cuIpcGetMemHandle(p))
    code, _ = cu.cuIpcOpenMemHandle(handle, 1)
    assert code == cu.CUresult.CUDA_ERROR_INVALID_CONTEXT, code
    subprocess.run([sys.executable, __file__, bytes(handle.reserved).hex()], check=True, timeout=60)
    assert download(p, SIZE) == b"\x11" * 4096 + b"\x22" * 100 + b"\x11" * (SIZE - 4196)
    ok(cu.cuMemFree(p))
    print("ipc: another process wrote what it should")


def writer(handle):
    start()
    h = cu.CUipcMemHandle()
    h.reserved = bytes.fromhex(handle)
    p = ok(cu.cuIpcOpenMemHandle(h, cu.CUipcMem_flags.CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS))
    assert download(p, SIZE) == b"\x11" * SIZE
    ok(cu.cuMemsetD8(int(p) + 4096, 0x22, 100))
    assert cu.cuMemFree(p)[0] == cu.CUresult.CUDA_ERROR_INVALID_VALUE
    ok(cu.cuIpcCloseMemHandle(p))
    assert cu.cuIpcCloseMemHandle(p)[0] == cu.CUresult.CUDA_ERROR_INVALID_VALUE


writer(sys.argv[1]) if len(sys.argv) > 1 else exporter()
