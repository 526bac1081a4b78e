package certificate_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"hydrallm/shared/certificate"
	"hydrallm/shared/testkit/certtest"
	"hydrallm/shared/testkit/leaktest"
	"hydrallm/shared/testkit/output"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

func files(t *testing.T) certificate.Files {
	t.Helper()
	dir := t.TempDir()
	return certificate.Files{Cert: filepath.Join(dir, "cert.pem"), Key: filepath.Join(dir, "key.pem")}
}

// what is wrong with a pair is said by file, and nothing of it is shown.
func TestLoad(t *testing.T) {
	t.Parallel()
	one, two := certtest.New(t, 1), certtest.New(t, 2)
	tests := map[string]struct {
		cert, key []byte
		want      []string
	}{
		"sound":               {one.Cert, one.Key, nil},
		"with an authority":   {append(append([]byte{}, one.Cert...), two.Cert...), one.Key, nil},
		"no certificate":      {nil, one.Key, []string{"cert.pem", "no such file"}},
		"no key":              {one.Cert, nil, []string{"key.pem", "no such file"}},
		"of another pair":     {one.Cert, two.Key, []string{"cert.pem", "key.pem", "does not match"}},
		"exchanged":           {one.Key, one.Cert, []string{"cert.pem", "key.pem"}},
		"empty":               {[]byte{}, []byte{}, []string{"cert.pem"}},
		"cut off":             {one.Cert[:len(one.Cert)/2], one.Key, []string{"cert.pem"}},
		"a key that is wrong": {one.Cert, []byte(strings.Replace(string(one.Key), "PRIVATE", "PUBLIC", 2)), []string{"key.pem"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := files(t)
			if tt.cert != nil {
				require.NoError(t, os.WriteFile(f.Cert, tt.cert, 0o600))
			}
			if tt.key != nil {
				require.NoError(t, os.WriteFile(f.Key, tt.key, 0o600))
			}
			_, err := f.Load()
			if tt.want == nil {
				require.NoError(t, err)
				return
			}
			for _, text := range tt.want {
				require.ErrorContains(t, err, text)
			}
			require.NotContains(t, err.Error(), "BEGIN")
			_, err = certificate.New(f, slog.New(slog.DiscardHandler))
			require.Error(t, err)
		})
	}
}

// serial shakes hands with a listener over a pipe and gives the number of the certificate that it shows.
func serial(t *testing.T, server *tls.Config, client *tls.Config) (int64, error) {
	t.Helper()
	a, b := net.Pipe()
	defer a.Close()                    //nolint:errcheck // a pipe
	defer b.Close()                    //nolint:errcheck // a pipe
	end := time.Now().Add(time.Second) // a pipe keeps nothing: who refuses writes to a peer that writes. This is time of a bubble
	require.NoError(t, errors.Join(a.SetDeadline(end), b.SetDeadline(end)))
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = tls.Server(a, server).HandshakeContext(t.Context()) // the client says what came of it
		_ = a.Close()
	}()
	conn := tls.Client(b, client)
	err := conn.HandshakeContext(t.Context())
	_ = b.Close()
	<-done
	if err != nil {
		return 0, err
	}
	return conn.ConnectionState().PeerCertificates[0].SerialNumber.Int64(), nil
}

// each handshake gets what the files hold, a pair that is not usable changes nothing and is one line, and a link may be turned.
func TestKeeperFollowsItsFiles(t *testing.T) {
	t.Parallel()
	dir, day := t.TempDir(), 24*time.Hour
	synctest.Test(t, func(t *testing.T) {
		one, two, three := certtest.Until(t, 1, time.Now().Add(day)), certtest.Until(t, 2, time.Now().Add(2*day)), certtest.Until(t, 3, time.Now().Add(3*day))
		for i, p := range []certtest.Pair{one, two, three} {
			sub := filepath.Join(dir, string(rune('1'+i)))
			require.NoError(t, os.Mkdir(sub, 0o700))
			p.Write(t, filepath.Join(sub, "cert.pem"), filepath.Join(sub, "key.pem"))
		}
		current := filepath.Join(dir, "current")
		turn := func(to string) {
			require.NoError(t, os.Symlink(to, current+".new"))
			require.NoError(t, os.Rename(current+".new", current))
		}
		turn("1")
		var out output.Buffer
		keeper, err := certificate.New(certificate.Files{Cert: filepath.Join(current, "cert.pem"), Key: filepath.Join(current, "key.pem")},
			slog.New(slog.NewTextHandler(&out, nil)))
		require.NoError(t, err)
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); keeper.Run(ctx) }()
		defer func() { stop(); <-done }()
		client := &tls.Config{RootCAs: certtest.Pool(one, two, three), ServerName: "127.0.0.1", MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"}}
		server := keeper.Config(tls.VersionTLS12)
		shows := func(want int64) {
			t.Helper()
			got, err := serial(t, server, client)
			require.NoError(t, err)
			require.Equal(t, want, got)
		}
		wait := func() {
			time.Sleep(time.Minute) //nolint:forbidigo // time of the bubble
			synctest.Wait()
		}
		shows(1)
		wait()
		require.Empty(t, out.String(), "nothing has changed")
		turn("2")
		wait()
		shows(2)
		require.Equal(t, 1, strings.Count(out.String(), "was read again"))
		require.WithinDuration(t, time.Now().Add(2*day), keeper.Expiry(), time.Hour)

		require.NoError(t, os.WriteFile(filepath.Join(dir, "2", "cert.pem"), three.Cert, 0o600)) // its key is not there yet
		wait()
		shows(2)
		require.Equal(t, 1, strings.Count(out.String(), "not usable"))
		require.Contains(t, out.String(), "does not match")
		require.NoError(t, os.Remove(filepath.Join(dir, "2", "key.pem")))
		wait()
		shows(2)
		require.Equal(t, 2, strings.Count(out.String(), "not usable"))
		require.NoError(t, os.WriteFile(filepath.Join(dir, "2", "key.pem"), three.Key, 0o600))
		wait()
		shows(3)
		require.NotContains(t, out.String(), "BEGIN")

		old := client.Clone()
		old.MaxVersion = tls.VersionTLS12
		_, err = serial(t, server, old)
		require.NoError(t, err)
		_, err = serial(t, keeper.Config(tls.VersionTLS13), old)
		require.ErrorContains(t, err, "version")
		old.MinVersion, old.MaxVersion = tls.VersionTLS10, tls.VersionTLS11
		_, err = serial(t, server, old)
		require.ErrorContains(t, err, "version")
		other := client.Clone()
		other.NextProtos = []string{"h2"}
		_, err = serial(t, server, other)
		require.ErrorContains(t, err, "application protocol")
	})
}

// A program of the same machine trusts the certificate of the files, by whatever address, and no other one.
func TestClientTrustsItsFiles(t *testing.T) {
	t.Parallel()
	f, other := files(t), files(t)
	synctest.Test(t, func(t *testing.T) { clientTrusts(t, f, other) })
}

func clientTrusts(t *testing.T, f, other certificate.Files) {
	t.Helper()
	one, two := certtest.New(t, 1), certtest.New(t, 2)
	one.Write(t, f.Cert, f.Key)
	two.Write(t, other.Cert, other.Key)
	client, err := f.Client()
	require.NoError(t, err)
	client.ServerName = "gateway.example"
	for _, tt := range []struct {
		files certificate.Files
		ok    bool
	}{{f, true}, {other, false}} {
		keeper, err := certificate.New(tt.files, slog.New(slog.DiscardHandler))
		require.NoError(t, err)
		_, err = serial(t, keeper.Config(tls.VersionTLS12), client)
		if tt.ok {
			require.NoError(t, err)
		} else {
			var unknown x509.HostnameError
			require.ErrorAs(t, err, &unknown)
		}
	}
	_, err = certificate.Files{Cert: "nowhere", Key: "nowhere"}.Client()
	require.ErrorContains(t, err, "nowhere")
}
