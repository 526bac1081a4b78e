package dispatcher_test

import (
	"bufio"
	"fmt"
	"io"
	"net/textproto"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"hydrallm/shared/contract"
	"hydrallm/shared/subject"
	"hydrallm/shared/topology"
)

// letter is a message as everyone hears it who is connected to the server.
type letter struct {
	header textproto.MIMEHeader
	body   string
}

// listen gives the messages of a subject. It speaks the protocol itself: dead letters are for operators, so the bus does not read them.
func (p *pipeline) listen(subj string) <-chan letter {
	p.t.Helper()
	conn, err := p.server.InProcessConn()
	require.NoError(p.t, err)
	letters, ready := make(chan letter, 16), make(chan struct{})
	var hearing sync.WaitGroup
	hearing.Go(func() { hear(bufio.NewReader(conn), letters, ready) })
	p.t.Cleanup(func() {
		require.NoError(p.t, conn.Close())
		hearing.Wait()
	})
	_, err = fmt.Fprintf(conn, "CONNECT {\"verbose\":false,\"headers\":true,\"no_responders\":true}\r\nSUB %s 1\r\nPING\r\n", subj)
	require.NoError(p.t, err)
	select {
	case <-ready:
	case <-time.After(testWait):
		p.t.Fatal("the server does not answer")
	}
	return letters
}

// hear reads what the server sends until the connection is closed.
func hear(in *bufio.Reader, letters chan<- letter, ready chan<- struct{}) {
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return
		}
		if strings.HasPrefix(line, "PONG") {
			close(ready)
		}
		var subj, sid, reply string
		var head, size int
		if _, err := fmt.Sscanf(line, "HMSG %s %s %s %d %d", &subj, &sid, &reply, &head, &size); err != nil {
			continue
		}
		data := make([]byte, size+2)
		if _, err := io.ReadFull(in, data); err != nil {
			return
		}
		_, fields, _ := strings.Cut(string(data[:head]), "\r\n")
		header, _ := textproto.NewReader(bufio.NewReader(strings.NewReader(fields))).ReadMIMEHeader() // the tests look for what they need
		letters <- letter{header, string(data[head:size])}
	}
}

// A request that no dispatcher could ever run is put away with the reason, without its body, and disturbs nothing.
func TestDeadLetters(t *testing.T) {
	t.Parallel()
	p := setup(t)
	letters := p.listen(subject.Dead(topology.Dispatcher))
	p.start("d", p.oneUpstream(""))
	p.ask("undecided", plainBody, func(r *contract.Request) { r.Decision = nil })
	var got letter
	select {
	case got = <-letters:
	case <-time.After(testWait):
		t.Fatal("no dead letter")
	}
	require.Equal(t, "undecided", got.header.Get(contract.HeaderRequestID))
	require.Equal(t, subject.Work("enriched"), got.header.Get("Hydra-Origin"))
	require.Equal(t, "request without a decision", got.header.Get("Hydra-Reason"))
	require.Equal(t, "1", got.header.Get("Hydra-Deliveries"))
	require.Empty(t, got.body)
	p.settled()
	require.Empty(t, letters, "it does not come back")
	require.Zero(t, p.facts.count("undecided"))
	require.Equal(t, received{}, p.now("undecided"))
	require.Len(t, p.upstream.Requests(), 1)
}
