package ptx

import "strings"

// cursor walks the modifiers of an instruction: each must be taken by someone.
type cursor struct {
	b    *builder
	mods []string
}

// opt takes the next modifier if it is one of names, else returns "".
func (c *cursor) opt(names ...string) string {
	if len(c.mods) > 0 {
		for _, n := range names {
			if c.mods[0] == n {
				c.mods = c.mods[1:]
				return n
			}
		}
	}
	return ""
}

// one takes the next modifier, which must be one of names.
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
	if !strings.ContainsRune(classes, rune("busfp"[t.class])) {
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

// end checks that no modifier is left.
func (c *cursor) end() error {
	if len(c.mods) > 0 {
		return c.b.errorf("modifier .%s is not supported here", c.mods[0])
	}
	return nil
}
