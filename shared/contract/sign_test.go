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
		{Position: at(2), RequestID: "streams", Sent: 300},
		{Position: at(2), RequestID: "streams much", Sent: 1 << 60},
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
	for _, heard := range [][]contract.Heard{nil, {{RequestID: "a", Unwanted: true}}, {{RequestID: "a", Lacks: true}, {RequestID: "", Lacks: true, From: 1 << 40}, {RequestID: "b", Unwanted: true}}} {
		require.Equal(t, heard, contract.ParseHeard(contract.AppendHeard(nil, heard...)))
	}
}

func FuzzHeard(f *testing.F) {
	whole := contract.AppendHeard(nil, contract.Heard{RequestID: "r1", Unwanted: true}, contract.Heard{RequestID: "r2", Lacks: true, From: 300})
	for i := range whole {
		f.Add(whole[:i])
	}
	f.Add(append(bytes.Clone(whole), 'x'))
	f.Fuzz(func(t *testing.T, msg []byte) {
		list := contract.ParseHeard(msg)
		require.Equal(t, list, contract.ParseHeard(contract.AppendHeard(nil, list...)))
	})
}

func FuzzSigns(f *testing.F) {
	whole := contract.AppendSigns(nil, "worker", contract.Sign{Position: at(3), RequestID: "r1"}, contract.Sign{Position: at(0), RequestID: "r2", Sent: 200})
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
