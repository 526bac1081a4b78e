package contract_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"hydrallm/shared/contract"
)

// a stage may leave out what is still to come, never the stage that it is, nor the dispatcher.
func TestSlipsOnlyGetShorter(t *testing.T) {
	t.Parallel()
	full := contract.Slip{contract.StageSession, contract.StageReceived, contract.StageAnalyzed, contract.StageEnriched}
	whole := slices.Clone(full)
	tests := map[contract.Stage]contract.Slip{
		contract.StageReceived: {contract.StageSession, contract.StageAnalyzed, contract.StageEnriched},
		contract.StageAnalyzed: {contract.StageSession, contract.StageReceived, contract.StageEnriched},
		contract.StageSession:  full,
		contract.StageEnriched: full,
		"unknown":              full,
	}
	for stage, want := range tests {
		require.Equal(t, want, full.Skip(stage), stage)
		require.Equal(t, whole, full, "the slip itself stays")
	}
	require.Equal(t, contract.StageSession, full.Here())
	require.True(t, full.Has(contract.StageAnalyzed))
	require.False(t, full.Skip(contract.StageAnalyzed).Has(contract.StageAnalyzed))
	require.Empty(t, contract.Slip(nil).Here())
	require.Empty(t, contract.Slip(nil).Skip(contract.StageReceived))
}

// Delivery rule 3: a later stage is behind every delivery to an earlier one.
func TestPositionsAreOrdered(t *testing.T) {
	t.Parallel()
	order := []contract.Position{
		{},
		{Stage: contract.StageSession, Delivery: 7},
		{Stage: contract.StageReceived},
		{Stage: contract.StageReceived, Delivery: 1},
		{Stage: contract.StageReceived, Delivery: 2},
		{Stage: contract.StageAnalyzed, Delivery: 1},
		{Stage: contract.StageEnriched},
		{Stage: contract.StageEnriched, Delivery: 1},
	}
	for i, p := range order {
		for j, q := range order {
			require.Equal(t, i < j, p.Compare(q) < 0, "%v %v", p, q)
			require.Equal(t, i == j, p.Compare(q) == 0, "%v %v", p, q)
		}
		if p.Stage == "" {
			continue
		}
		raw := append(p.Append(nil), "rest"...)
		got, n := contract.ParsePosition(raw)
		require.Equal(t, p, got)
		require.Equal(t, "rest", string(raw[n:]))
	}
	for _, raw := range [][]byte{nil, {1}, {4, 1}, {1, 0x80}} {
		_, n := contract.ParsePosition(raw)
		require.Zero(t, n, raw)
	}
}
