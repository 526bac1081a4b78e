package faultbus

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"hydrallm/shared/testkit/await"
	"hydrallm/shared/testkit/leaktest"
	"hydrallm/shared/testkit/natstest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

func connect(t *testing.T, url string) *nats.Conn {
	t.Helper()
	nc, err := nats.Connect(url, nats.ReconnectWait(10*time.Millisecond), nats.MaxReconnects(-1))
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	return nc
}

func TestMessagesAreLostAndRepeated(t *testing.T) {
	t.Parallel()
	server := natstest.StartListening(t)
	p := Start(t, server.ClientURL(), 1, Rule{Subject: "bad.*", Loss: 0.3, Repeat: 0.3}, Rule{Subject: "gone.>", Loss: 1})
	sub, err := connect(t, server.ClientURL()).SubscribeSync(">")
	require.NoError(t, err)
	require.NoError(t, sub.SetPendingLimits(-1, -1))
	nc := connect(t, p.URL())
	const n = 400
	for range n {
		require.NoError(t, nc.Publish("bad.one", []byte("payload\r\nPUB fake 1\r\nx")))
		require.NoError(t, nc.PublishMsg(&nats.Msg{Subject: "good", Header: nats.Header{"A": {"b"}}, Data: []byte("x")}))
		require.NoError(t, nc.Publish("gone.a.b", nil))
	}
	require.NoError(t, nc.Publish("last", nil))
	got := map[string]int{}
	for {
		m, err := sub.NextMsg(await.Limit)
		require.NoError(t, err)
		if m.Subject == "last" {
			break
		}
		got[m.Subject]++
	}
	require.Equal(t, n, got["good"])
	require.Zero(t, got["gone.a.b"])
	require.Equal(t, n-(p.Lost()-n)+p.Repeated(), got["bad.one"])
	require.InDelta(t, 0.3*n, p.Lost()-n, 0.1*n)
	require.InDelta(t, 0.3*n, p.Repeated(), 0.1*n)
	require.Len(t, got, 2)
}

// Messages that are late keep their order, those that are overtaken lose it, and none of them is lost; a flush waits for all of them.
func TestMessagesAreLateAndOvertaken(t *testing.T) {
	t.Parallel()
	server := natstest.Start(t)
	p := Before(t, server, 1, Rule{Subject: "late", Late: 0.3, Delay: time.Millisecond}, Rule{Subject: "swapped", Swap: 0.3})
	far, err := nats.Connect("", nats.InProcessServer(server))
	require.NoError(t, err)
	t.Cleanup(far.Close)
	sub, err := far.SubscribeSync(">")
	require.NoError(t, err)
	require.NoError(t, far.FlushTimeout(await.Limit))
	near, err := nats.Connect("", nats.InProcessServer(p))
	require.NoError(t, err)
	t.Cleanup(near.Close)
	const n = 300
	for i := range n {
		require.NoError(t, near.Publish("late", []byte(strconv.Itoa(i))))
		require.NoError(t, near.Publish("swapped", []byte(strconv.Itoa(i))))
	}
	require.NoError(t, near.FlushTimeout(await.Limit))
	require.NoError(t, far.FlushTimeout(await.Limit))
	got := map[string][]int{}
	for range 2 * n {
		m, err := sub.NextMsg(await.Limit)
		require.NoError(t, err)
		i, err := strconv.Atoi(string(m.Data))
		require.NoError(t, err)
		got[m.Subject] = append(got[m.Subject], i)
	}
	require.True(t, slices.IsSorted(got["late"]))
	require.False(t, slices.IsSorted(got["swapped"]))
	slices.Sort(got["swapped"])
	require.Equal(t, got["late"], got["swapped"])
	require.InDelta(t, 0.3*n, p.Late(), 0.1*n)
	require.InDelta(t, 0.3*n, p.Swapped(), 0.1*n)

	require.NoError(t, near.Publish("swapped", []byte("0"))) // nothing overtakes it
	for range 4 {
		require.NoError(t, near.Publish("swapped", []byte("0")))
		_, err = sub.NextMsg(await.Limit)
		require.NoError(t, err)
	}
}

func TestCutConnectionsComeBack(t *testing.T) {
	t.Parallel()
	server := natstest.StartListening(t)
	p := Start(t, server.ClientURL(), 1)
	nc := connect(t, p.URL())
	back := make(chan struct{})
	nc.SetReconnectHandler(func(*nats.Conn) { close(back) })
	p.Cut()
	<-back
	require.NoError(t, nc.FlushTimeout(await.Limit))
}

// While a proxy is parted nothing passes and nobody is told; afterwards everything has been only late.
func TestPartedConnectionsGoOn(t *testing.T) {
	t.Parallel()
	server := natstest.StartListening(t)
	p := Start(t, server.ClientURL(), 1)
	far, near := connect(t, server.ClientURL()), connect(t, p.URL())
	sub, err := far.SubscribeSync("a")
	require.NoError(t, err)
	require.NoError(t, far.FlushTimeout(await.Limit))
	p.Part()
	require.NoError(t, near.Publish("a", []byte("late")))
	require.ErrorIs(t, near.FlushTimeout(100*time.Millisecond), nats.ErrTimeout)
	n, _, err := sub.Pending()
	require.NoError(t, err)
	require.Zero(t, n)
	require.True(t, near.IsConnected())
	p.Part() // is no other one
	p.Join()
	require.NoError(t, near.FlushTimeout(await.Limit))
	m, err := sub.NextMsg(await.Limit)
	require.NoError(t, err)
	require.Equal(t, "late", string(m.Data))
	p.Join()
}

func TestMatches(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		pattern, subject string
		want             bool
	}{
		"equal":            {"a.b", "a.b", true},
		"star":             {"a.*.c", "a.b.c", true},
		"star is one":      {"a.*", "a.b.c", false},
		"tail":             {"a.>", "a.b.c", true},
		"tail needs one":   {"a.>", "a", false},
		"shorter":          {"a.b", "a", false},
		"longer":           {"a", "a.b", false},
		"everything":       {">", "a", true},
		"other":            {"a", "b", false},
		"star needs token": {"a.*", "a", false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, tt.want, matches(tt.pattern, tt.subject))
		})
	}
}

// Whatever a client sends: relaying ends, and without faults the server gets a prefix of exactly that.
func FuzzRelay(f *testing.F) {
	f.Add([]byte("CONNECT {}\r\nPING\r\nPUB a 3\r\nabc\r\nHPUB a r 2 4\r\nhhpp\r\n"))
	f.Add([]byte("PUB a 99999999999\r\n"))
	f.Add([]byte("PUB a -1\r\n"))
	f.Add([]byte("\r\n"))
	f.Add([]byte("00000\nPUB 0 0\n"))
	f.Add([]byte("pub a 0\r\n\r\nSUB b 1\r\n"))
	f.Fuzz(func(t *testing.T, sent []byte) {
		var got bytes.Buffer
		wait, err := relay(&got, bytes.NewReader(sent), func(string) fate { return fate{times: 1} })
		wait()
		require.Error(t, err, "a relay ends with its client")
		require.True(t, bytes.HasPrefix(sent, got.Bytes()))
		if errors.Is(err, io.EOF) && strings.HasSuffix(string(sent), "\n") {
			require.Equal(t, len(sent), got.Len())
		}
	})
}
