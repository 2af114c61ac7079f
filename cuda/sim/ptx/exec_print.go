package ptx

import (
	"encoding/binary"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// maxPrinted bounds a text that a kernel hands to the driver.
const maxPrinted = 64 << 10

// text reads a string that ends with a zero, at a generic address.
func (r *Run) text(w *warp, in *inst, lane int, addr uint64) (string, error) {
	var s []byte
	for len(s) < maxPrinted {
		p, _, t := r.at(w, in, lane, spaceGeneric, addr+uint64(len(s)), 1, false)
		if t != nil {
			return "", t
		}
		if p[0] == 0 {
			break
		}
		s = append(s, p[0])
	}
	return string(s), nil
}

// print is vprintf(format, arguments): the arguments lie one behind the other, each
// aligned to its size (CUDA C++ Programming Guide, "Formatted Output"). The result is
// how many there are.
func (r *Run) print(w *warp, in *inst, m uint32) error {
	for lane := range warpSize {
		if m>>lane&1 == 0 {
			continue
		}
		own := r.frameOf(w, lane, w.regs[in.a][lane])
		format, err := r.text(w, in, lane, frameWord(own[in.elems[0]:]))
		if err != nil {
			return err
		}
		a := arguments{r: r, w: w, in: in, lane: lane, at: frameWord(own[in.elems[1]:])}
		out, err := a.print(format)
		if err != nil {
			return err
		}
		if r.l.Printf != nil {
			_, _ = r.l.Printf.Write([]byte(out)) // as the driver, whose output goes nowhere then
		}
		binary.LittleEndian.PutUint32(own[in.imm:], a.count)
	}
	return nil
}

// arguments are what a format takes, one after the other.
type arguments struct {
	r     *Run
	w     *warp
	in    *inst
	lane  int
	at    uint64
	count uint32
}

func (a *arguments) next(size uint64) (uint64, error) {
	a.at = (a.at + size - 1) &^ (size - 1)
	p, _, t := a.r.at(a.w, a.in, a.lane, spaceGeneric, a.at, size, false)
	if t != nil {
		return 0, t
	}
	a.at += size
	a.count++
	return loadLE(p, int(size)), nil
}

func (a *arguments) print(format string) (string, error) {
	var out strings.Builder
	for format != "" && out.Len() < maxPrinted {
		at := strings.IndexByte(format, '%')
		if at < 0 {
			at = len(format)
		}
		out.WriteString(format[:at])
		if format = format[at:]; format == "" {
			break
		}
		d, rest, err := a.directive(format)
		if err != nil {
			return "", err
		}
		if format = rest; d.verb == 0 { // no directive: it stands for itself
			out.WriteString(d.flags)
			continue
		}
		s, err := a.value(d)
		if err != nil {
			return "", err
		}
		out.WriteString(s)
	}
	return out.String(), nil
}

// directive is a %-directive of C's printf.
type directive struct {
	flags            string
	width, precision int // -1: not given
	size             uint64
	verb             byte
}

const maxWidth = 4096

func (a *arguments) directive(s string) (d directive, rest string, err error) {
	whole := s
	s = s[1:]
	d.width, d.precision, d.size = -1, -1, 4
	n := 0
	for n < len(s) && strings.IndexByte("-+ #0", s[n]) >= 0 {
		n++
	}
	d.flags, s = s[:n], s[n:]
	number := func() (int, error) {
		if s != "" && s[0] == '*' {
			s = s[1:]
			v, err := a.next(4)
			return max(min(int(int32(v)), maxWidth), -maxWidth), err
		}
		n := 0
		for s != "" && digit(s[0]) {
			n, s = min(10*n+int(s[0]-'0'), maxWidth), s[1:]
		}
		return n, nil
	}
	if s != "" && (digit(s[0]) || s[0] == '*') {
		if d.width, err = number(); err != nil {
			return
		}
		if d.width < 0 {
			d.flags, d.width = d.flags+"-", -d.width
		}
	}
	if s != "" && s[0] == '.' {
		s = s[1:]
		if d.precision, err = number(); err != nil {
			return
		}
		d.precision = max(d.precision, -1)
	}
	for s != "" && strings.IndexByte("hlLqjzt", s[0]) >= 0 {
		switch s[0] {
		case 'h':
			d.size = max(d.size/2, 1)
		default:
			d.size = 8
		}
		s = s[1:]
	}
	if s == "" || strings.IndexByte("diouxXcspfFeEgGaA%", s[0]) < 0 {
		d.verb, d.flags = 0, whole[:len(whole)-len(s)]
		return d, s, nil
	}
	d.verb = s[0]
	return d, s[1:], nil
}

func (a *arguments) value(d directive) (string, error) {
	switch d.verb {
	case '%':
		return "%", nil
	case 's':
		at, err := a.next(8)
		if err != nil {
			return "", err
		}
		s, err := a.r.text(a.w, a.in, a.lane, at)
		if d.precision >= 0 && len(s) > d.precision {
			s = s[:d.precision]
		}
		return d.pad("", s, false), err
	case 'c':
		v, err := a.next(4)
		return d.pad("", string([]byte{byte(v)}), false), err
	case 'p':
		v, err := a.next(8)
		return d.pad("", "0x"+strconv.FormatUint(v, 16), false), err
	case 'f', 'F', 'e', 'E', 'g', 'G', 'a', 'A':
		v, err := a.next(8)
		return d.float(math.Float64frombits(v)), err
	}
	v, err := a.next(max(d.size, 4)) // smaller ones are passed as an int
	return d.integer(v), err
}

// pad brings a text with its sign or prefix to the width.
func (d directive) pad(prefix, s string, zeros bool) string {
	n := d.width - len(prefix) - len(s)
	switch {
	case n <= 0:
		return prefix + s
	case strings.Contains(d.flags, "-"):
		return prefix + s + strings.Repeat(" ", n)
	case zeros && strings.Contains(d.flags, "0"):
		return prefix + strings.Repeat("0", n) + s
	}
	return strings.Repeat(" ", n) + prefix + s
}

// sign is what stands before a number of that sign.
func (d directive) sign(negative bool) string {
	switch {
	case negative:
		return "-"
	case strings.Contains(d.flags, "+"):
		return "+"
	case strings.Contains(d.flags, " "):
		return " "
	}
	return ""
}

func (d directive) integer(v uint64) string {
	sh := uint8(64 - 8*d.size)
	prefix, s := "", ""
	alternate := strings.Contains(d.flags, "#")
	switch d.verb {
	case 'd', 'i':
		x := sext(v, sh)
		prefix = d.sign(x < 0)
		if s = strconv.FormatUint(uint64(x), 10); x < 0 {
			s = strconv.FormatUint(-uint64(x), 10)
		}
	default:
		v = v << sh >> sh
		s = strconv.FormatUint(v, map[byte]int{'u': 10, 'o': 8, 'x': 16, 'X': 16}[d.verb])
		switch {
		case d.verb == 'o' && alternate && v != 0:
			s = "0" + s
		case d.verb == 'x' && alternate && v != 0:
			prefix = "0x"
		case d.verb == 'X':
			if s = strings.ToUpper(s); alternate && v != 0 {
				prefix = "0X"
			}
		}
	}
	if d.precision == 0 && v == 0 {
		s = ""
	}
	if n := d.precision - len(s); n > 0 {
		s = strings.Repeat("0", n) + s
	}
	return d.pad(prefix, s, d.precision < 0)
}

// float is a number as Go prints it, which differs from C in the exponent and in %g
// only where fmt does not follow C.
func (d directive) float(v float64) string {
	prefix := d.sign(math.Signbit(v) && v == v)
	v = math.Abs(v)
	var s string
	switch {
	case v != v:
		s = "nan"
	case math.IsInf(v, 0):
		s = "inf"
	case d.verb == 'a' || d.verb == 'A':
		s = hexFloat(v, d.precision)
	default:
		p := d.precision
		if p < 0 {
			p = 6
		}
		verb := d.verb | 0x20
		if verb == 'g' {
			s = general(v, max(p, 1), strings.Contains(d.flags, "#"))
		} else {
			s = strconv.FormatFloat(v, verb, p, 64)
			if p == 0 && strings.Contains(d.flags, "#") && verb == 'f' {
				s += "."
			}
		}
	}
	if d.verb >= 'A' && d.verb <= 'Z' {
		s = strings.ToUpper(s)
	}
	return d.pad(prefix, s, v == v && !math.IsInf(v, 0))
}

// general is %g: %e where the exponent is below -4 or not below the precision, without
// trailing zeros.
func general(v float64, p int, alternate bool) string {
	s := strconv.FormatFloat(v, 'e', p-1, 64)
	mantissa, exponent, _ := strings.Cut(s, "e")
	x, _ := strconv.Atoi(exponent)
	if v == 0 {
		x = 0
	}
	trim := func(s string) string {
		if !alternate && strings.Contains(s, ".") {
			s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
		}
		return s
	}
	if x < -4 || x >= p {
		return trim(mantissa) + "e" + exponent
	}
	return trim(strconv.FormatFloat(v, 'f', p-1-x, 64))
}

// hexFloat is %a: the exponent has as many digits as it needs.
func hexFloat(v float64, p int) string {
	s := strconv.FormatFloat(v, 'x', p, 64)
	mantissa, exponent, _ := strings.Cut(s, "p")
	x, _ := strconv.Atoi(exponent)
	return fmt.Sprintf("%sp%+d", mantissa, x)
}

// assert is __assertfail(message, file, line, function, size of a character).
func (r *Run) assert(w *warp, in *inst, m uint32) error {
	lane := lowest(m)
	own := r.frameOf(w, lane, w.regs[in.a][lane])
	var s [3]string
	for i, at := range []int{0, 1, 3} {
		var err error
		if s[i], err = r.text(w, in, lane, frameWord(own[in.elems[at]:])); err != nil {
			return err
		}
	}
	line := binary.LittleEndian.Uint32(own[in.elems[2]:])
	return r.trap(w, in, 1<<lane, ErrAssert, fmt.Sprintf("%s:%d: %s: %s", s[1], line, s[2], s[0]))
}
