"""NVIDIA's agent, driven by lines: each is answered by "ok ..." or "error ..."."""
import importlib.util
import mmap
import ctypes
import sys

spec = importlib.util.spec_from_file_location("_bindings", sys.argv[1])
nixl = importlib.util.module_from_spec(spec)
spec.loader.exec_module(nixl)


class Agent:
    def start(self, name, size, port=0):
        config = nixl.nixlAgentConfig()
        config.useProgThread = True
        config.useListenThread = port != 0
        config.lthrDelay = 1000
        config.listenPort = int(port or 8888)
        config.syncMode = nixl.NIXL_THREAD_SYNC_RW
        self.agent = nixl.nixlAgent(name, config)
        params, _ = self.agent.getPluginParams("UCX")
        self.backend = self.agent.createBackend("UCX", params)
        self.memory = mmap.mmap(-1, int(size))
        self.addr = ctypes.addressof(ctypes.c_char.from_buffer(self.memory))
        self.regions = nixl.nixlRegDList(nixl.DRAM_SEG)
        self.regions.addDesc((self.addr, int(size), 0, ""))
        self.agent.registerMem(self.regions, [self.backend])
        self.kept = []
        return self.agent.getLocalMD().hex()

    def address(self):
        return self.addr

    def add(self, blob):
        return self.agent.loadRemoteMD(bytes.fromhex(blob)).decode()

    def known(self, peer):
        return int(self.agent.checkRemoteMD(peer, nixl.nixlXferDList(nixl.DRAM_SEG)) == nixl.NIXL_SUCCESS)

    def publish(self, ip="", port=0):
        self.agent.sendLocalMD(ip, int(port))

    def fetch(self, peer, ip="", port=0):
        self.agent.fetchRemoteMD(peer, ip, int(port))

    def withdraw(self, ip="", port=0):
        self.agent.invalidateLocalMD(ip, int(port))

    def fill(self, value):
        self.memory[:] = bytes([int(value)]) * len(self.memory)

    def bytes(self, *offsets):
        return " ".join(str(self.memory[int(o)]) for o in offsets)

    def message(self):
        while not self.kept:
            for sender, messages in self.agent.getNotifs({}).items():
                self.kept += [(sender, m) for m in messages]
        sender, message = self.kept.pop(0)
        return f"{sender} {message.hex()}"

    def notify(self, peer, message):
        self.agent.genNotif(peer, bytes.fromhex(message).decode())

    def transfer(self, op, peer, addr, size, message):
        lists = []
        for at in (self.addr, int(addr)):
            lists.append(nixl.nixlXferDList(nixl.DRAM_SEG))
            lists[-1].addDesc((at, int(size), 0))
        request = self.agent.createXferReq(
            getattr(nixl, "NIXL_" + op), lists[0], lists[1], peer, bytes.fromhex(message).decode()
        )
        status = self.agent.postXferReq(request)
        while status == nixl.NIXL_IN_PROG:
            status = self.agent.getXferStatus(request)
        self.agent.releaseXferReq(request)
        if status != nixl.NIXL_SUCCESS:
            raise RuntimeError(str(status))

    def end(self):
        self.agent.deregisterMem(self.regions, [self.backend])
        del self.agent


agent = Agent()
for line in sys.stdin:
    op, *args = line.split()
    try:
        answer = getattr(agent, op)(*args)
        print("ok", "" if answer is None else answer, flush=True)
    except Exception as e:  # told to the test, which fails
        print("error", op, e, flush=True)
