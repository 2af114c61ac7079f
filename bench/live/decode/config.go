// Package decode is an engine small enough to run on any device: it decodes a
// batch of requests in steps, whose forward pass package standin stands in for,
// and has their prompts brought by a NIC. The gate orders all of it.
package decode

import (
	"fmt"
	"time"

	"github.com/kvgate/kvgate/bench/live/nic"
	"github.com/kvgate/kvgate/bench/live/standin"
)

// Config says what an engine decodes.
type Config struct {
	Step         time.Duration // what the forward pass takes at least
	Requests     int           // at the same time
	PromptBlocks int           // of each, whole ones
	AnswerTokens int           // of a request on average; each has between half as many and half more
	BlockTokens  int
	Segments     int
	PageBytes    int // of a block in a segment
	Seed         uint64
}

// slots is how many prompts wait at the other end.
const slots = 4

// Blocks returns the blocks of the pool: for each request as many as it may come
// to, and the null block, so that a new request gets what others have just left.
func (c *Config) Blocks() int { return c.Requests*(c.PromptBlocks+c.answerBlocks()) + 1 }

// answerBlocks is how many blocks the longest answer takes.
func (c *Config) answerBlocks() int { return (c.longest() + c.BlockTokens - 1) / c.BlockTokens }

func (c *Config) shortest() int { return (c.AnswerTokens + 1) / 2 }
func (c *Config) longest() int  { return c.AnswerTokens + c.AnswerTokens/2 }

// BlockBytes returns the size of a block.
func (c *Config) BlockBytes() uint64 { return uint64(c.Segments) * uint64(c.PageBytes) }

func (c *Config) prompts() nic.Prompts {
	return nic.Prompts{Slots: slots, Blocks: c.PromptBlocks, Segments: c.Segments, PageBytes: c.PageBytes, Tokens: c.BlockTokens}
}

// maxPages is how many pages a step may check.
const maxPages = 1 << 24

// Check says what makes no sense.
func (c *Config) Check() error {
	for _, n := range []struct {
		name string
		v    int
	}{{"requests", c.Requests}, {"blocks of a prompt", c.PromptBlocks}, {"tokens of an answer", c.AnswerTokens}} {
		if n.v < 1 || n.v > 1<<20 {
			return fmt.Errorf("%d %s: want 1 to %d", n.v, n.name, 1<<20)
		}
	}
	if c.Step < 0 || c.Step > time.Minute {
		return fmt.Errorf("a step of %v: want 0 to %v", c.Step, time.Minute)
	}
	if _, err := standin.NewPages(0, 1, c.Segments, c.PageBytes, c.BlockTokens); err != nil {
		return err
	}
	if n := int64(c.PromptBlocks)*int64(c.BlockTokens) + int64(c.longest()); n > standin.MaxPosition {
		return fmt.Errorf("%d tokens of a request: want at most %d", n, standin.MaxPosition)
	}
	if n := int64(c.Requests) * int64(c.PromptBlocks+c.answerBlocks()) * int64(c.Segments); n > maxPages {
		return fmt.Errorf("%d pages in a step: want at most %d", n, maxPages)
	}
	return nil
}
