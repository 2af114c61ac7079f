package ptx

// special is a special register (section "Special Registers"). All but the
// clock are constant for a warp and have a slot that is filled before it runs.
type special uint8

const (
	specialNone special = iota
	specialTidX
	specialTidY
	specialTidZ
	specialCtaidX
	specialCtaidY
	specialCtaidZ
	specialNtidX
	specialNtidY
	specialNtidZ
	specialNctaidX
	specialNctaidY
	specialNctaidZ
	specialLane
	specialWarp
	specialNwarp
	specialMaskEq
	specialMaskLt
	specialMaskLe
	specialMaskGt
	specialMaskGe
	specialDynamicShared
	specialTotalShared
	specialGrid
	specialSM
	specialNSM
	specialZero // of clusters of one thread block: ranks and ids in them
	specialOne  // and their sizes
)

var specialNames = map[string]special{
	"%tid.x": specialTidX, "%tid.y": specialTidY, "%tid.z": specialTidZ,
	"%ctaid.x": specialCtaidX, "%ctaid.y": specialCtaidY, "%ctaid.z": specialCtaidZ,
	"%ntid.x": specialNtidX, "%ntid.y": specialNtidY, "%ntid.z": specialNtidZ,
	"%nctaid.x": specialNctaidX, "%nctaid.y": specialNctaidY, "%nctaid.z": specialNctaidZ,
	"%laneid": specialLane, "%warpid": specialWarp, "%nwarpid": specialNwarp,
	"%lanemask_eq": specialMaskEq, "%lanemask_lt": specialMaskLt, "%lanemask_le": specialMaskLe,
	"%lanemask_gt": specialMaskGt, "%lanemask_ge": specialMaskGe,
	"%dynamic_smem_size": specialDynamicShared, "%total_smem_size": specialTotalShared,
	// Without clusters each thread block is one by itself (section "Special Registers").
	"%clusterid.x": specialCtaidX, "%clusterid.y": specialCtaidY, "%clusterid.z": specialCtaidZ,
	"%nclusterid.x": specialNctaidX, "%nclusterid.y": specialNctaidY, "%nclusterid.z": specialNctaidZ,
	"%cluster_ctaid.x": specialZero, "%cluster_ctaid.y": specialZero, "%cluster_ctaid.z": specialZero,
	"%cluster_nctaid.x": specialOne, "%cluster_nctaid.y": specialOne, "%cluster_nctaid.z": specialOne,
	"%cluster_ctarank": specialZero, "%cluster_nctarank": specialOne,
	"%gridid": specialGrid, "%smid": specialSM, "%nsmid": specialNSM,
}

func (b *builder) special(k special, t dtype) (int32, error) {
	want := typeU32
	if k == specialGrid {
		want.bits = 64
	}
	if !want.agrees(t) {
		return 0, b.errorf("special register is %s, not %s", want, t)
	}
	s, ok := b.specials[k]
	if !ok {
		s = b.newSlot()
		b.specials[k] = s
		b.k.specials = append(b.k.specials, specialSlot{s, k})
	}
	return s, nil
}

// perWarp reports whether the register differs between the warps of a block.
func (k special) perWarp() bool {
	switch k {
	case specialTidX, specialTidY, specialTidZ, specialWarp:
		return true
	}
	return false
}

// perBlock reports whether the register differs between thread blocks.
func (k special) perBlock() bool {
	return k == specialCtaidX || k == specialCtaidY || k == specialCtaidZ
}

// fill writes the register's value for each lane of a warp. The block's index
// is block; the first thread of the warp has the linear index first.
func (k special) fill(d *lanes, l *Launch, sharedTotal uint64, block [3]uint32, first uint32) {
	v := uint64(0)
	switch k {
	case specialTidX:
		for i := range d {
			d[i] = uint64((first + uint32(i)) % l.Block[0])
		}
		return
	case specialTidY:
		for i := range d {
			d[i] = uint64((first + uint32(i)) / l.Block[0] % l.Block[1])
		}
		return
	case specialTidZ:
		for i := range d {
			d[i] = uint64((first + uint32(i)) / l.Block[0] / l.Block[1])
		}
		return
	case specialLane, specialMaskEq, specialMaskLt, specialMaskLe, specialMaskGt, specialMaskGe:
		for i := range d {
			d[i] = uint64(k.ofLane(i))
		}
		return
	case specialCtaidX, specialCtaidY, specialCtaidZ:
		v = uint64(block[k-specialCtaidX])
	case specialNtidX, specialNtidY, specialNtidZ:
		v = uint64(l.Block[k-specialNtidX])
	case specialNctaidX, specialNctaidY, specialNctaidZ:
		v = uint64(l.Grid[k-specialNctaidX])
	case specialWarp:
		v = uint64(first / warpSize)
	case specialNwarp:
		v = uint64(MaxThreads / warpSize)
	case specialDynamicShared:
		v = uint64(l.DynamicShared)
	case specialTotalShared:
		v = sharedTotal
	case specialGrid:
		v = 1
	case specialNSM, specialOne:
		v = 1
	}
	for i := range d {
		d[i] = v
	}
}

// ofLane is the value of a register that goes by the lane alone.
func (k special) ofLane(lane int) uint32 {
	bit := uint32(1) << lane
	switch k {
	case specialMaskEq:
		return bit
	case specialMaskLt:
		return bit - 1
	case specialMaskLe:
		return bit | (bit - 1)
	case specialMaskGt:
		return ^(bit | (bit - 1))
	case specialMaskGe:
		return ^(bit - 1)
	}
	return uint32(lane)
}
