"""A CUDA program in NVIDIA's own Python client, cuda-bindings, run on whatever
libcuda.so.1 the loader finds. It loads this repository's PTX, runs kernels,
copies, fills, events, streams, words and graphs, and checks every byte.

    client.py KERNELS-FOLDER
"""
import ctypes
import random
import struct
import sys

from cuda.bindings import driver as cu

checks = 0


def ok(result):
    """Returns what a call returned, or ends the program with CUDA's error."""
    code, *values = result
    if code != cu.CUresult.CUDA_SUCCESS:
        raise SystemExit(f"client: {code!r}")
    return values[0] if len(values) == 1 else tuple(values)


def check(what, got, want):
    global checks
    checks += 1
    if got != want:
        if isinstance(got, (bytes, bytearray)):
            i = next((i for i, (a, b) in enumerate(zip(got, want)) if a != b), min(len(got), len(want)))
            raise SystemExit(f"client: {what}: {len(got)} bytes, want {len(want)}; first difference at {i}")
        raise SystemExit(f"client: {what}: {got!r}, want {want!r}")


def upload(data):
    p = ok(cu.cuMemAlloc(len(data)))
    ok(cu.cuMemcpyHtoD(p, bytes(data), len(data)))
    return p


def download(p, n):
    data = bytearray(n)
    ok(cu.cuMemcpyDtoH(data, p, n))
    return data


def launch(kernel, grid, stream, *args):
    """Arguments are (ctype, value) pairs; their pointers go to the driver."""
    ok(cu.cuLaunchKernel(kernel, grid, 1, 1, 256, 1, 1, 0, stream,
                         (tuple(v for _, v in args), tuple(t for t, _ in args)), 0))


def module(folder, name):
    with open(f"{folder}/{name}.ptx", "rb") as f:
        m = ok(cu.cuModuleLoadData(f.read() + b"\0"))
    return m, ok(cu.cuModuleGetFunction(m, name.encode()))


u32, ptr = ctypes.c_uint32, ctypes.c_void_p
blocks, pitch, page = 40, 5000, 4321  # pages at any alignment, gaps between them


def tiles():
    """Cuts a page into tiles of at most 1,024 bytes, as kernels/tiles.cuh has
    them: start, stride, offset, bytes, reserved, padded to 16 bytes."""
    return b"".join(struct.pack("<QQQII", at, pitch, at, min(1024, page - at), 0) for at in range(0, page, 1024))


def kernels(folder, stream):
    table = tiles()
    count = len(table) // 32
    where = upload(table)
    ids = [3, 0, 39, 3, 17, -1, 22, 40, 1 << 30]  # a duplicate, and some that are not to be touched
    id_list = upload(struct.pack(f"<{len(ids)}i", *ids))
    length = upload(struct.pack("<I", len(ids)))
    want = bytearray(random.Random(7).randbytes(blocks * pitch))
    arena = upload(want)
    head = [(ptr, int(arena)), (ptr, int(where)), (u32, count), (u32, 0), (u32, blocks), (u32, len(ids))]
    tail = [(ptr, int(id_list)), (ptr, int(length))]
    inside = [i for i in ids if 0 <= i < blocks]

    m, zero = module(folder, "zero_blocks")
    launch(zero, 7, stream, *head, *tail)
    ok(cu.cuStreamSynchronize(stream))
    for i in inside:
        want[i * pitch:i * pitch + page] = bytes(page)
    check("arena after zero_blocks", download(arena, len(want)), want)

    row = random.Random(8).randbytes(page)
    template = upload(row)
    m2, reset = module(folder, "reset_state")
    launch(reset, 5, stream, *head, (ptr, int(template)), *tail)
    ok(cu.cuStreamSynchronize(stream))
    for i in inside:
        want[i * pitch:i * pitch + page] = row
    check("arena after reset_state", download(arena, len(want)), want)

    code, _ = cu.cuModuleGetFunction(m, b"no_such_kernel")
    check("a kernel that is not there", code, cu.CUresult.CUDA_ERROR_NOT_FOUND)
    for p in (where, id_list, length, arena, template):
        ok(cu.cuMemFree(p))
    for x in (m, m2):
        ok(cu.cuModuleUnload(x))


def copies(stream):
    n = 1 << 16
    data = random.Random(9).randbytes(n)
    a, b = upload(data), ok(cu.cuMemAlloc(n))
    pinned = ok(cu.cuMemHostAlloc(n, 0))
    ok(cu.cuMemsetD8Async(b, 0xEE, n, stream))
    ok(cu.cuMemcpyDtoDAsync(b, a, n - 100, stream))
    ok(cu.cuMemsetD32Async(int(b) + 64, 0x01020304, 16, stream))
    ok(cu.cuMemcpyDtoHAsync(pinned, b, n, stream))
    ok(cu.cuStreamSynchronize(stream))
    want = bytearray(data[:n - 100] + b"\xee" * 100)
    want[64:128] = struct.pack("<I", 0x01020304) * 16
    check("pinned memory after copies", ctypes.string_at(pinned, n), bytes(want))
    check("a copy that leaves its memory", cu.cuMemcpyDtoD(int(b) + n - 8, a, 16)[0], cu.CUresult.CUDA_ERROR_INVALID_VALUE)
    check("the range of an address", tuple(map(int, ok(cu.cuMemGetAddressRange(int(a) + 5)))), (int(a), n))
    ok(cu.cuMemFreeHost(pinned))
    ok(cu.cuMemFree(a))
    ok(cu.cuMemFree(b))
    check("freed twice", cu.cuMemFree(a)[0], cu.CUresult.CUDA_ERROR_INVALID_VALUE)


def streams():
    """A wait on an event orders two streams; the legacy stream waits for one
    that is not non-blocking."""
    n = 32 << 20
    blocking = ok(cu.cuStreamCreate(0))
    other = ok(cu.cuStreamCreateWithPriority(1, ok(cu.cuCtxGetStreamPriorityRange())[1]))
    event = ok(cu.cuEventCreate(2))
    check("an event that was never recorded", cu.cuEventQuery(event)[0], cu.CUresult.CUDA_SUCCESS)
    big, small = ok(cu.cuMemAlloc(n)), ok(cu.cuMemAlloc(64))
    for i in range(4):
        ok(cu.cuMemsetD32Async(big, i + 1, n // 4, blocking))
    ok(cu.cuEventRecord(event, blocking))
    check("an event behind a backlog", cu.cuEventQuery(event)[0], cu.CUresult.CUDA_ERROR_NOT_READY)
    ok(cu.cuStreamWaitEvent(other, event, 0))
    ok(cu.cuMemcpyDtoDAsync(small, int(big) + n - 64, 64, other))
    ok(cu.cuStreamSynchronize(other))
    check("a copy behind the wait", download(small, 64), bytearray(struct.pack("<I", 4) * 16))
    check("the event", cu.cuEventQuery(event)[0], cu.CUresult.CUDA_SUCCESS)
    ok(cu.cuMemsetD32Async(big, 9, n // 4, blocking))
    check("what a copy in the legacy stream sees", download(int(big) + n - 4, 4), bytearray(struct.pack("<I", 9)))
    ok(cu.cuEventSynchronize(event))
    ok(cu.cuCtxSynchronize())
    for p in (big, small):
        ok(cu.cuMemFree(p))
    ok(cu.cuEventDestroy(event))
    for s in (blocking, other):
        ok(cu.cuStreamDestroy(s))
    check("a stream that is gone", cu.cuStreamSynchronize(other)[0], cu.CUresult.CUDA_ERROR_INVALID_HANDLE)


def graphs(stream):
    """A capture over two streams, launched twice; what it forbids."""
    mode = cu.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_GLOBAL
    n = 4096
    a, b = upload(bytes(n)), upload(bytes(n))
    other, forked, joined = ok(cu.cuStreamCreate(1)), ok(cu.cuEventCreate(2)), ok(cu.cuEventCreate(2))
    ok(cu.cuStreamBeginCapture(stream, mode))
    check("the status of a stream that is captured", ok(cu.cuStreamIsCapturing(stream)),
          cu.CUstreamCaptureStatus.CU_STREAM_CAPTURE_STATUS_ACTIVE)
    ok(cu.cuMemcpyDtoDAsync(b, a, n, stream))
    ok(cu.cuEventRecord(forked, stream))
    ok(cu.cuStreamWaitEvent(other, forked, 0))
    ok(cu.cuMemsetD8Async(a, 0x11, n // 2, stream))
    ok(cu.cuMemsetD8Async(int(a) + n // 2, 0x22, n // 2, other))
    ok(cu.cuEventRecord(joined, other))
    ok(cu.cuStreamWaitEvent(stream, joined, 0))
    graph = ok(cu.cuStreamEndCapture(stream))
    run = ok(cu.cuGraphInstantiate(graph, 0))
    ok(cu.cuGraphDestroy(graph))
    want = b"\x11" * (n // 2) + b"\x22" * (n // 2)
    check("memory that captured work would have changed", download(a, n), bytearray(n))
    ok(cu.cuGraphLaunch(run, other))
    ok(cu.cuStreamSynchronize(other))
    check("memory after the first launch", (download(a, n), download(b, n)), (bytearray(want), bytearray(n)))
    ok(cu.cuGraphLaunch(run, stream))
    ok(cu.cuStreamSynchronize(stream))
    check("memory after the second launch", download(b, n), bytearray(want))
    ok(cu.cuGraphExecDestroy(run))

    ok(cu.cuStreamBeginCapture(stream, mode))
    check("synchronising a stream that is captured", cu.cuStreamSynchronize(stream)[0],
          cu.CUresult.CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED)
    check("the end of a capture that was spoiled", cu.cuStreamEndCapture(stream)[0],
          cu.CUresult.CUDA_ERROR_STREAM_CAPTURE_INVALIDATED)
    blocking = ok(cu.cuStreamCreate(0))
    ok(cu.cuStreamBeginCapture(blocking, cu.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED))
    check("the legacy stream while a blocking stream is captured", cu.cuMemsetD8Async(a, 0, n, 0)[0],
          cu.CUresult.CUDA_ERROR_STREAM_CAPTURE_IMPLICIT)
    cu.cuStreamEndCapture(blocking)
    for p in (a, b):
        ok(cu.cuMemFree(p))
    for e in (forked, joined):
        ok(cu.cuEventDestroy(e))
    for s in (other, blocking):
        ok(cu.cuStreamDestroy(s))


def words():
    """A stream waits for a word until another, or the host, has written it."""
    waiting, writing = ok(cu.cuStreamCreate(1)), ok(cu.cuStreamCreate(1))
    event = ok(cu.cuEventCreate(2 | 1))  # without timing, blocking synchronisation
    host = ok(cu.cuMemHostAlloc(64, 2))
    seen = (ctypes.c_uint32 * 16).from_address(host)
    word = ok(cu.cuMemHostGetDevicePointer(host, 0))
    small = upload(bytes(4))
    seen[0] = 0
    ok(cu.cuStreamWaitValue32(waiting, word, 1, 0))
    ok(cu.cuMemsetD32Async(small, 4711, 1, waiting))
    ok(cu.cuStreamWaitValue32(waiting, word, 2, 0))
    ok(cu.cuEventRecord(event, waiting))
    check("an event behind a wait for a word", cu.cuEventQuery(event)[0], cu.CUresult.CUDA_ERROR_NOT_READY)
    ok(cu.cuStreamWriteValue32(writing, word, 1, 0))
    ok(cu.cuStreamSynchronize(writing))
    check("a word that a stream has written", seen[0], 1)
    check("an event behind a second wait", cu.cuEventQuery(event)[0], cu.CUresult.CUDA_ERROR_NOT_READY)
    seen[0] = 2
    ok(cu.cuEventSynchronize(event))
    check("what was filled behind the wait", download(small, 4), bytearray(struct.pack("<I", 4711)))
    check("a word at an odd place", cu.cuStreamWriteValue32(writing, int(word) + 2, 1, 0)[0], cu.CUresult.CUDA_ERROR_INVALID_VALUE)
    ok(cu.cuMemFreeHost(host))
    ok(cu.cuMemFree(small))
    ok(cu.cuEventDestroy(event))
    for s in (waiting, writing):
        ok(cu.cuStreamDestroy(s))


def priorities():
    """Priorities outside of the range are clamped to it."""
    least, greatest = ok(cu.cuCtxGetStreamPriorityRange())
    check("the range of priorities", (least, greatest < least), (0, True))
    for asked, want in ((least, least), (greatest, greatest), (greatest - 9, greatest), (least + 9, least)):
        s = ok(cu.cuStreamCreateWithPriority(1, asked))
        check(f"priority {asked}", ok(cu.cuStreamGetPriority(s)), want)
        ok(cu.cuStreamDestroy(s))


def default_streams():
    """0 and CU_STREAM_LEGACY are one stream; the per-thread one is refused."""
    blocking, event = ok(cu.cuStreamCreate(0)), ok(cu.cuEventCreate(2))
    small, n = upload(bytes(4)), 32 << 20
    big = ok(cu.cuMemAlloc(n))
    for i in range(4):
        ok(cu.cuMemsetD32Async(big, i + 1, n // 4, cu.CU_STREAM_LEGACY))
    ok(cu.cuMemcpyDtoDAsync(small, int(big) + n - 4, 4, blocking))
    ok(cu.cuStreamSynchronize(blocking))
    check("what a blocking stream sees of the legacy one", download(small, 4), bytearray(struct.pack("<I", 4)))
    ok(cu.cuEventRecord(event, 0))
    ok(cu.cuStreamSynchronize(cu.CU_STREAM_LEGACY))
    check("an event in stream 0", cu.cuEventQuery(event)[0], cu.CUresult.CUDA_SUCCESS)
    check("the per-thread stream", cu.cuEventRecord(event, cu.CU_STREAM_PER_THREAD)[0], cu.CUresult.CUDA_ERROR_NOT_SUPPORTED)
    for p in (big, small):
        ok(cu.cuMemFree(p))
    ok(cu.cuEventDestroy(event))
    ok(cu.cuStreamDestroy(blocking))


def main():
    ok(cu.cuInit(0))
    device = ok(cu.cuDeviceGet(0))
    print("client:", ok(cu.cuDeviceGetName(64, device)).split(b"\0")[0].decode(), "CUDA", ok(cu.cuDriverGetVersion()))
    context = ok(cu.cuDevicePrimaryCtxRetain(device))
    ok(cu.cuCtxSetCurrent(context))
    stream = ok(cu.cuStreamCreate(1))
    kernels(sys.argv[1], stream)
    copies(stream)
    streams()
    graphs(stream)
    words()
    priorities()
    default_streams()
    ok(cu.cuStreamDestroy(stream))
    ok(cu.cuDevicePrimaryCtxRelease(device))
    print(f"client: {checks} checks passed")


main()
