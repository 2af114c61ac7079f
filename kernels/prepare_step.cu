// prepare_step does what the blocks of a step need before it runs, in one launch:
// zeroing, resets to a row and copies, of several tables. Nothing in a
// launch may be written twice, or be written and read: kernels.Preparation in Go
// parts what is in conflict into launches that follow each other.
//
// The work comes in sections, each a list of pairs over one table. A warp goes
// from section to section; the items of a section are dealt from where those of
// the one before it ended, so that short lists of many sections spread over all
// warps as one long list does.
#include "pages.cuh"

// Layout: kernels.section in Go.
struct Section {
    Side dst, src; // a source of base 0: there is none, zeros are written
    const Tile *tiles;
    u32 tileCount;
    u32 count;
    u32 list; // its first pair
    u32 reserved;
};

enum : u32 { maxSections = 8 };

// Layout: kernels.stepHead in Go. The pairs follow it.
struct Step {
    u32 sections;
    u32 reserved;
    Section section[maxSections];
};

template <u32 capacity> struct StepArgs {
    Step step;
    Pair pair[capacity];
};

__device__ inline void prepare(const Step &step, const Pair *__restrict__ pairs) {
    const u32 warps = gridDim.x * warpsPerBlock;
    const u32 warp = blockIdx.x + (threadIdx.x >> 5) * gridDim.x;
    const u32 sections = min(step.sections, (u32)maxSections);
    u32 shift = 0; // items of the sections so far, modulo warps
#pragma unroll 1
    for (u32 i = 0; i < sections; i++) {
        const Section &s = step.section[i];
        const Side dst = s.dst, src = s.src;
        const u32 tileCount = s.tileCount, count = s.count, list = s.list;
        const Tile *tiles = s.tiles;
        if (tileCount == 0)
            continue;
#pragma unroll 1
        for (Cursor c(tileCount, warp >= shift ? warp - shift : warp + warps - shift); c.position < count; c.next()) {
            const Tile t = loadTile(tiles, c.tile);
            const Pair p = pairs[list + c.position];
            if (dst.skips(p.dst) | t.none())
                continue;
            const Address to = dst.at(t, p.dst);
            if (src.base == 0)
                fill<true>(to, t.bytes(), 0);
            else if (!src.skips(p.src))
                copy(to, src.at(t, p.src), t.bytes());
        }
        shift = (u32)((shift + (u64)count * tileCount) % warps);
    }
}

// The step in memory that the device can read: the head, then the pairs. No step,
// nothing to do.
extern "C" __global__ void __launch_bounds__(256, 4) prepare_step(const Step *step) {
    if (step)
        prepare(*step, (const Pair *)(step + 1));
}

// Up to 54 pairs in the arguments.
extern "C" __global__ void __launch_bounds__(256, 4) prepare_step_54(const StepArgs<54> args) {
    prepare(args.step, args.pair);
}

// Up to 439 pairs in the arguments.
extern "C" __global__ void __launch_bounds__(256, 4) prepare_step_439(const StepArgs<439> args) {
    prepare(args.step, args.pair);
}
