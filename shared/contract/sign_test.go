package contract_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"hydrallm/shared/contract"
)

func signs(msg []byte) (worker string, list []contract.Sign, err error) {
	worker, all, err := contract.Signs(msg)
	if err != nil {
		return "", nil, err
	}
	for s, err := range all {
		if err != nil {
			return worker, list, err
		}
		list = append(list, s)
	}
	return worker, list, nil
}

func TestSignsSurviveTheWay(t *testing.T) {
	t.Parallel()
	sent := []contract.Sign{
		{Position: at(1), RequestID: "a"},
		{Position: contract.Position{Stage: contract.StageSession}, RequestID: "waits"},
		{Position: at(1 << 60), RequestID: ""},
	}
	worker, got, err := signs(contract.AppendSigns(nil, "w", sent...))
	require.NoError(t, err)
	require.Equal(t, "w", worker)
	require.Equal(t, sent, got)
	worker, got, err = signs(contract.AppendSigns(nil, "idle"))
	require.NoError(t, err)
	require.Equal(t, "idle", worker)
	require.Empty(t, got)
	_, all, err := contract.Signs(contract.AppendSigns(nil, "w", sent...))
	require.NoError(t, err)
	for s, err := range all { // reading may stop early
		require.NoError(t, err)
		require.Equal(t, sent[0], s)
		break
	}
	for _, ids := range [][]string{nil, {"a"}, {"a", "b"}} {
		require.Equal(t, ids, contract.IDs(contract.AppendIDs(nil, ids)))
	}
}

func FuzzSigns(f *testing.F) {
	whole := contract.AppendSigns(nil, "worker", contract.Sign{Position: at(3), RequestID: "r1"}, contract.Sign{Position: at(0), RequestID: "r2"})
	for i := range whole {
		f.Add(whole[:i])
	}
	f.Add(append(bytes.Clone(whole), 9))
	f.Add(bytes.Repeat([]byte{0xff}, 20))
	f.Fuzz(func(t *testing.T, msg []byte) {
		worker, list, err := signs(msg)
		if err != nil {
			require.ErrorIs(t, err, contract.ErrBadSigns)
			return
		}
		again, same, err := signs(contract.AppendSigns(nil, worker, list...))
		require.NoError(t, err)
		require.Equal(t, worker, again)
		require.Equal(t, list, same)
	})
}
