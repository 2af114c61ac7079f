package abi

import (
	"fmt"
	"strconv"
	"strings"
)

// MinDriver is the oldest driver that takes the PTX of this module, ISA 7.8.
const MinDriver = 11080

// ISA is a version of the PTX instruction set.
type ISA struct{ Major, Minor int }

func (v ISA) String() string { return fmt.Sprintf("%d.%d", v.Major, v.Minor) }

// After reports whether v is newer than o.
func (v ISA) After(o ISA) bool {
	return v.Major > o.Major || v.Major == o.Major && v.Minor > o.Minor
}

// CUDA is a CUDA version as CUDA counts: 12040 is 12.4.
type CUDA int

func (v CUDA) String() string { return fmt.Sprintf("%d.%d", int(v)/1000, int(v)%1000/10) }

// isas says which instruction set came with which CUDA. Source: PTX ISA,
// "Release Notes", table "PTX Release History".
var isas = []struct {
	cuda CUDA
	isa  ISA
}{
	{11000, ISA{7, 0}}, {11010, ISA{7, 1}}, {11020, ISA{7, 2}}, {11030, ISA{7, 3}}, {11040, ISA{7, 4}},
	{11050, ISA{7, 5}}, {11060, ISA{7, 6}}, {11070, ISA{7, 7}}, {11080, ISA{7, 8}},
	{12000, ISA{8, 0}}, {12010, ISA{8, 1}}, {12020, ISA{8, 2}}, {12030, ISA{8, 3}}, {12040, ISA{8, 4}},
	{12050, ISA{8, 5}}, {12070, ISA{8, 6}}, {12080, ISA{8, 7}}, {12090, ISA{8, 8}}, {13000, ISA{9, 0}},
}

// NewestISA returns the newest instruction set that a driver surely takes. One
// that is newer than this table knows takes at least its last entry.
func NewestISA(driver int) ISA {
	var v ISA
	for _, x := range isas {
		if int(x.cuda) <= driver {
			v = x.isa
		}
	}
	return v
}

// Brought returns the CUDA version that brought an instruction set, or 0 where
// the table does not know it.
func Brought(v ISA) CUDA {
	for _, x := range isas {
		if !v.After(x.isa) {
			return x.cuda
		}
	}
	return 0
}

// ImageISA returns the version that PTX declares; false for what is no PTX.
func ImageISA(image []byte) (ISA, bool) {
	for _, line := range strings.Split(string(image[:min(len(image), 4096)]), "\n") {
		line = strings.TrimSpace(line)
		v, ok := strings.CutPrefix(line, ".version")
		if !ok {
			continue
		}
		v, _, _ = strings.Cut(strings.TrimSpace(v), " ")
		major, minor, ok := strings.Cut(v, ".")
		a, err1 := strconv.Atoi(major)
		b, err2 := strconv.Atoi(minor)
		return ISA{a, b}, ok && err1 == nil && err2 == nil
	}
	return ISA{}, false
}
