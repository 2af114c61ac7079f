package loadgate_test

import (
	"bytes"
	"context"
	"encoding/json"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/loadgate"
	"github.com/kvgate/kvgate/memory/layout"
)

// other opens a second gate, on the same device and fabric.
func (r *openRig) other(name string, plan *layout.Plan) *loadgate.Gate {
	agent, err := r.fabric.NewAgent(name, r.dev.NIC())
	require.NoError(r.t, err)
	g, err := loadgate.Open(r.dev, loadgate.Options{Plan: plan, Memory: plan.Size(100), Agent: agent})
	require.NoError(r.t, err)
	r.others = append(r.others, g)
	return g
}

func TestPeersDescribeThemselves(t *testing.T) {
	ctx := context.Background()
	r := newOpenRig(t, hybrid(t, layout.Options{}), 20, nil)
	theirs, err := r.other("prefill", hybrid(t, layout.Options{})).Metadata()
	require.NoError(t, err)
	p, err := r.gate.AddPeer(ctx, theirs)
	require.NoError(t, err)
	require.Contains(t, p.String(), "prefill")
	again, err := r.gate.AddPeer(ctx, theirs)
	require.NoError(t, err)
	require.Equal(t, p, again, "the same life")
	require.Equal(t, "no peer", loadgate.Peer{}.String())
}

func TestPeersOfAnotherLayoutAreRefusedByField(t *testing.T) {
	ctx := context.Background()
	r := newOpenRig(t, hybrid(t, layout.Options{}), 20, nil)
	theirs, err := r.other("prefill", hybrid(t, layout.Options{StateMode: layout.StateAlign, ConvOrder: layout.ConvDS})).Metadata()
	require.NoError(t, err)
	_, err = r.gate.AddPeer(ctx, theirs)
	var m *layout.MismatchError
	require.ErrorAs(t, err, &m)
	require.ErrorContains(t, err, "conv_order")
	require.ErrorContains(t, err, "state_mode")
}

func TestMetadataFromOutside(t *testing.T) {
	ctx := context.Background()
	r := newOpenRig(t, hybrid(t, layout.Options{}), 20, nil)
	good, err := r.other("prefill", hybrid(t, layout.Options{})).Metadata()
	require.NoError(t, err)
	refused := func(says string, data []byte) {
		t.Helper()
		_, err := r.gate.AddPeer(ctx, data)
		require.ErrorContains(t, err, says)
	}
	refused("metadata", nil)
	refused("metadata", []byte("{"))
	refused("version 2, want 1", bytes.Replace(good, []byte(`"version":1`), []byte(`"version":2`), 1))
	refused("layout", []byte(`{"version":1}`))
	refused("at most", make([]byte, 64<<20+1))
	var m map[string]json.RawMessage
	require.NoError(t, json.Unmarshal(good, &m))
	m["agent"] = json.RawMessage(`"bm9uc2Vuc2U="`)
	bad, err := json.Marshal(m)
	require.NoError(t, err)
	refused("add peer", bad)
	for i := range 200 { // cut off anywhere
		refused("", good[:i*len(good)/200])
	}
	_, err = r.gate.AddPeer(ctx, good)
	require.NoError(t, err)

	alone := newOpenRig(t, hybrid(t, layout.Options{}), 20, func(o *loadgate.Options) { o.Agent = nil })
	_, err = alone.gate.AddPeer(ctx, good)
	require.ErrorContains(t, err, "no agent")
	_, err = alone.gate.Metadata()
	require.ErrorContains(t, err, "no agent")
}

// Metadata comes from outside: whatever bytes are changed, it is a peer or an
// error, never both, and never a panic.
func TestMetadataChanged(t *testing.T) {
	r := newOpenRig(t, hybrid(t, layout.Options{}), 20, nil)
	good, err := r.other("prefill", hybrid(t, layout.Options{})).Metadata()
	require.NoError(t, err)
	rng := rand.New(rand.NewPCG(1, 1))
	peers := 0
	for range 3000 {
		data := slices.Clone(good)
		for range 1 + rng.IntN(3) {
			data[rng.IntN(len(data))] = byte(rng.IntN(256))
		}
		p, err := r.gate.AddPeer(context.Background(), data)
		if err != nil {
			require.Zero(t, p)
			continue
		}
		peers++
	}
	require.Positive(t, peers, "some changes do no harm")
}
