package ptx

import (
	"slices"
	"strings"
)

// cursor walks the modifiers of an instruction: each must be taken by someone.
type cursor struct {
	b    *builder
	mods []string
}

// opt takes the first modifier that is one of names, else returns "". Modifiers may
// come in any order but for that of types, as ptxas 12.9 has it.
func (c *cursor) opt(names ...string) string {
	for i, m := range c.mods {
		if slices.Contains(names, m) {
			c.mods = slices.Delete(slices.Clone(c.mods), i, i+1)
			return m
		}
	}
	return ""
}

// one is opt where one of names has to be there.
func (c *cursor) one(names ...string) (string, error) {
	if s := c.opt(names...); s != "" {
		return s, nil
	}
	if len(c.mods) == 0 {
		return "", c.b.errorf("lacks one of .%s", strings.Join(names, ", ."))
	}
	return "", c.b.errorf("modifier .%s is not supported here", c.mods[0])
}

// typ takes a type of one of the classes and one of the widths; it is the last
// modifier unless more follow for the caller.
func (c *cursor) typ(classes string, widths ...uint8) (dtype, error) {
	if len(c.mods) == 0 {
		return dtype{}, c.b.errorf("lacks a type")
	}
	t, ok := typeNames[c.mods[0]]
	if !ok {
		return dtype{}, c.b.errorf("modifier .%s is not supported here", c.mods[0])
	}
	if t.class > classPred || !strings.ContainsRune(classes, rune("busfp"[t.class])) {
		return dtype{}, c.b.errorf("type %s is not supported here", t)
	}
	if t.class != classPred {
		for _, w := range widths {
			if w == t.bits {
				c.mods = c.mods[1:]
				return t, nil
			}
		}
		return dtype{}, c.b.errorf("type %s is not supported here", t)
	}
	c.mods = c.mods[1:]
	return t, nil
}

// floating returns the last modifier that is a floating-point type.
func (c *cursor) floating() (dtype, bool) {
	for _, m := range slices.Backward(c.mods) {
		if t, ok := typeNames[m]; ok && t.floating() {
			return t, true
		}
	}
	return dtype{}, false
}

// exactly takes the next modifier, which must be the type t.
func (c *cursor) exactly(t dtype) error {
	if len(c.mods) > 0 && c.mods[0] == t.String()[1:] {
		c.mods = c.mods[1:]
		return nil
	}
	if len(c.mods) == 0 {
		return c.b.errorf("lacks a type")
	}
	return c.b.errorf("modifier .%s is not supported here", c.mods[0])
}

// end checks that no modifier is left.
func (c *cursor) end() error {
	if len(c.mods) > 0 {
		return c.b.errorf("modifier .%s is not supported here", c.mods[0])
	}
	return nil
}
