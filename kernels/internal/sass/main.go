// Command sass reads what nvdisasm tells of compiled kernels, and writes how many
// instructions of the device each kernel takes for a KiB in its inner loop.
//
//	sass LABEL=FILE ...
//
// A FILE is the output of nvdisasm -c. The table has a row for each kernel of it, in
// order, under its LABEL.
package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"text/tabwriter"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "sass:", err)
		os.Exit(1)
	}
}

func run(args []string, out io.Writer) error {
	if len(args) == 0 {
		return fmt.Errorf("no files given")
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "kernel\tfor\tloop\tstores\tloads\tbytes\tinstructions/KiB\tstores/KiB\tloads before the id is tested")
	for _, a := range args {
		label, path, ok := strings.Cut(a, "=")
		if !ok {
			return fmt.Errorf("%q: want LABEL=FILE", a)
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		kernels, err := parse(f)
		f.Close()
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		for _, k := range kernels {
			l, err := k.innerLoop()
			if err != nil {
				return fmt.Errorf("%s: %s: %w", path, k.name, err)
			}
			kib := float64(l.bytes) / 1024
			fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%d\t%d\t%.2f\t%.2f\t%d\n", k.name, label, l.instructions, l.stores, l.loads, l.bytes,
				float64(l.instructions)/kib, float64(l.stores)/kib, k.early())
		}
	}
	return w.Flush()
}

// kernel is the instructions of one kernel, as text.
type kernel struct {
	name   string
	code   []string
	labels map[string]int // the index of the instruction that follows
}

var (
	entry       = regexp.MustCompile(`^\.text\.(\w+):$`)
	label       = regexp.MustCompile(`^(\.L_x_\d+):$`)
	instruction = regexp.MustCompile(`^\s*/\*[0-9a-f]+\*/\s+(.*?)\s*;`)
	branch      = regexp.MustCompile("BRA(?:\\.\\S+)?\\s.*`\\((\\.L_x_\\d+)\\)")
)

func parse(r io.Reader) ([]*kernel, error) {
	var all []*kernel
	var k *kernel
	s := bufio.NewScanner(r)
	for s.Scan() {
		line := s.Text()
		if m := entry.FindStringSubmatch(line); m != nil {
			k = &kernel{name: m[1], labels: map[string]int{}}
			all = append(all, k)
			continue
		}
		if k == nil {
			continue
		}
		if m := label.FindStringSubmatch(strings.TrimSpace(line)); m != nil {
			k.labels[m[1]] = len(k.code)
		} else if m := instruction.FindStringSubmatch(line); m != nil {
			k.code = append(k.code, m[1])
		}
	}
	if len(all) == 0 && s.Err() == nil {
		return nil, fmt.Errorf("no kernels in it")
	}
	return all, s.Err()
}

// loop is a loop without another in it, or a whole kernel that has none.
type loop struct {
	instructions, stores, loads int
	bytes                       int // that a warp stores, or loads where it stores none, in a turn
}

// innerLoop returns the innermost loop that moves most bytes in a turn.
func (k *kernel) innerLoop() (loop, error) {
	type span struct{ from, to int }
	var spans []span
	for i, c := range k.code {
		if m := branch.FindStringSubmatch(c); m != nil {
			if at, ok := k.labels[m[1]]; ok && at < i {
				spans = append(spans, span{at, i})
			}
		}
	}
	if len(spans) == 0 {
		end := len(k.code)
		for i, c := range k.code {
			if strings.HasSuffix(c, "EXIT") && !strings.HasPrefix(c, "@") {
				end = i
				break
			}
		}
		spans = []span{{0, end}}
	}
	var best loop
	for _, s := range spans {
		inner := true
		for _, o := range spans {
			inner = inner && (o == s || o.from < s.from || o.to > s.to)
		}
		if !inner {
			continue
		}
		var l loop
		stored, loaded := 0, 0
		for _, c := range k.code[s.from : s.to+1] {
			l.instructions++
			op := c
			if strings.HasPrefix(op, "@") {
				_, op, _ = strings.Cut(op, " ")
			}
			op, _, _ = strings.Cut(strings.TrimSpace(op), " ")
			switch {
			case strings.HasPrefix(op, "STG."):
				l.stores++
				stored += 32 * width(op)
			case strings.HasPrefix(op, "LDG."):
				l.loads++
				loaded += 32 * width(op)
			}
		}
		if l.bytes = stored; stored == 0 {
			l.bytes = loaded
		}
		if l.bytes > best.bytes {
			best = l
		}
	}
	if best.bytes == 0 {
		return best, fmt.Errorf("no loop that loads or stores")
	}
	return best, nil
}

// width returns the bytes that a lane loads or stores.
func width(op string) int {
	for suffix, n := range map[string]int{".128": 16, ".64": 8, ".U8": 1, ".S8": 1, ".U16": 2, ".S16": 2} {
		if strings.Contains(op, suffix) {
			return n
		}
	}
	return 4
}

// early counts the loads between the first load of 16 bytes that is of a tile and
// the next branch, with those right before it: what a warp waits for at once.
func (k *kernel) early() int {
	tile := -1
	for i, c := range k.code {
		if strings.Contains(c, "LDG.E.128.CONSTANT") {
			tile = i
			break
		}
	}
	if tile < 0 {
		return 0
	}
	n := 0
	for i := tile; i >= 0 && !strings.Contains(k.code[i], "BRA"); i-- {
		if at := k.labelAt(i + 1); at && i < tile {
			break // the loop begins here
		}
		if strings.Contains(k.code[i], "LDG.") {
			n++
		}
	}
	for i := tile + 1; i < len(k.code) && !strings.Contains(k.code[i], "BRA"); i++ {
		if strings.Contains(k.code[i], "LDG.") {
			n++
		}
	}
	return n
}

func (k *kernel) labelAt(i int) bool {
	for _, at := range k.labels {
		if at == i {
			return true
		}
	}
	return false
}
