package contract_test

import (
	"bytes"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"hydrallm/shared/contract"
)

// at is the position of a delivery to the dispatcher.
func at(delivery uint64) contract.Position {
	return contract.Position{Stage: contract.StageEnriched, Delivery: delivery}
}

func frames(msg []byte) ([]contract.Frame, error) {
	var list []contract.Frame
	for f, err := range contract.Frames(msg) {
		if err != nil {
			return list, err
		}
		list = append(list, f)
	}
	return list, nil
}

func TestFramesSurviveTheWay(t *testing.T) {
	t.Parallel()
	sent := []contract.Frame{
		{Kind: contract.FrameHead, Position: at(3), Payload: []byte(`{"status":200}`)},
		{Kind: contract.FrameData, Position: at(math.MaxUint64), Seq: 1 << 40, Payload: bytes.Repeat([]byte{0xff}, 300)},
		{Kind: contract.FrameData, Position: contract.Position{Stage: contract.StageSession}, Payload: []byte{}},
		{Kind: contract.FrameEnd, Position: at(3), Seq: 2, Payload: []byte(`{"outcome":"success"}`)},
	}
	var msg []byte
	for _, f := range sent {
		msg = contract.AppendFrame(msg, f)
	}
	got, err := frames(msg)
	require.NoError(t, err)
	require.Equal(t, sent, got)
}

func TestReadingMayStopEarly(t *testing.T) {
	t.Parallel()
	msg := contract.AppendFrame(nil, contract.Frame{Kind: contract.FrameData, Position: at(1), Payload: []byte("a")})
	msg = contract.AppendFrame(msg, contract.Frame{Kind: contract.FrameData, Position: at(1), Payload: []byte("b")})
	for f, err := range contract.Frames(msg) {
		require.NoError(t, err)
		require.Equal(t, "a", string(f.Payload))
		break
	}
}

func TestMalformedFrames(t *testing.T) {
	t.Parallel()
	whole := contract.AppendFrame(nil, contract.Frame{Kind: contract.FrameData, Position: at(1), Seq: 300, Payload: []byte("payload")})
	tests := map[string]struct {
		msg  []byte
		good int
	}{
		"unknown kind":             {[]byte("x\x00\x00\x00"), 0},
		"only the kind":            {[]byte("d"), 0},
		"no delivery":              {[]byte{'d', 3}, 0},
		"unknown stage":            {[]byte("d\x04\x00\x00\x00"), 0},
		"number without end":       {[]byte{'d', 3, 0x80}, 0},
		"delivery above 64 bits":   {append([]byte{'d', 3}, bytes.Repeat([]byte{0xff}, 11)...), 0},
		"number above 64 bits":     {append([]byte{'d', 3, 1}, bytes.Repeat([]byte{0xff}, 11)...), 0},
		"payload cut":              {whole[:len(whole)-1], 0},
		"size beyond the message":  {[]byte{'d', 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01}, 0},
		"garbage after good frame": {append(bytes.Clone(whole), 'x'), 1},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := frames(tt.msg)
			require.ErrorIs(t, err, contract.ErrBadFrame)
			require.Len(t, got, tt.good)
		})
	}
}

// A frame that grew is read like one that was written at once, up to the largest.
func TestGrowingFrame(t *testing.T) {
	t.Parallel()
	for _, more := range []int{0, 1, 100, 127, 128, 1<<14 - 1, 1 << 14, contract.MaxGrowing - 3} {
		want := contract.Frame{Kind: contract.FrameData, Position: at(3), Seq: 300, Payload: append([]byte("one"), bytes.Repeat([]byte{0xff}, more)...)}
		grown := want
		grown.Payload = []byte("o")
		head := contract.AppendFrame(nil, contract.Frame{Kind: contract.FrameHead, Position: at(3), Payload: []byte("{}")})
		msg, start := contract.AppendGrowing(head, grown)
		msg = contract.GrowFrame(contract.GrowFrame(msg, start, []byte("ne")), start, want.Payload[3:])
		got, err := frames(contract.AppendFrame(msg, contract.Frame{Kind: contract.FrameEnd, Position: at(3), Payload: []byte("{}")}))
		require.NoError(t, err)
		require.Len(t, got, 3)
		require.Equal(t, want, got[1])
	}
}

// Whatever bytes come, reading ends, payloads lie inside the message, and what was read can be written again to the same effect.
func FuzzFrames(f *testing.F) {
	f.Add([]byte{})
	f.Add(contract.AppendFrame(nil, contract.Frame{Kind: contract.FrameEnd, Position: at(2), Seq: 9, Payload: []byte("{}")}))
	f.Add(contract.AppendFrame(contract.AppendFrame(nil, contract.Frame{Kind: contract.FrameHead, Position: at(1)}), contract.Frame{Kind: contract.FrameData, Position: at(1), Payload: []byte("x")}))
	f.Add([]byte{'d', 0xff, 0xff})
	f.Fuzz(func(t *testing.T, msg []byte) {
		got, err := frames(msg)
		size := 0
		var again []byte
		for _, fr := range got {
			size += len(fr.Payload)
			again = contract.AppendFrame(again, fr)
		}
		require.LessOrEqual(t, size, len(msg))
		if err != nil {
			require.ErrorIs(t, err, contract.ErrBadFrame)
			return
		}
		reread, err := frames(again)
		require.NoError(t, err)
		require.Equal(t, got, reread)
	})
}

func BenchmarkFrames(b *testing.B) {
	payload := bytes.Repeat([]byte("x"), 200)
	var buf []byte
	b.ReportAllocs()
	for b.Loop() {
		buf = contract.AppendFrame(buf[:0], contract.Frame{Kind: contract.FrameData, Position: at(1), Seq: 1000, Payload: payload})
		for _, err := range contract.Frames(buf) {
			if err != nil {
				b.Fatal(err)
			}
		}
	}
}
