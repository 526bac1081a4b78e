// Package certificate keeps the TLS certificate of a listener as its files have it, while connections come and go.
package certificate

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync/atomic"
	"time"
)

// Files name a pair in PEM form. The certificate stands first, before those of the authorities between it and a known one.
type Files struct{ Cert, Key string }

// errNoLeaf says that a pair was read and has no certificate, which does not happen.
var errNoLeaf = errors.New("there is no certificate")

// Load reads the pair. The error names the file, and never shows what it holds.
func (f Files) Load() (*tls.Certificate, error) {
	pair, _, err := f.read()
	return pair, err
}

func (f Files) read() (pair *tls.Certificate, text []byte, err error) {
	cert, err := os.ReadFile(f.Cert)
	if err != nil {
		return nil, nil, fmt.Errorf("reading the certificate: %w", err)
	}
	key, err := os.ReadFile(f.Key)
	if err != nil {
		return nil, nil, fmt.Errorf("reading the key of the certificate: %w", err)
	}
	text = append(append(cert, 0), key...)
	read, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return nil, text, fmt.Errorf("certificate %s and key %s: %w", f.Cert, f.Key, err)
	}
	if read.Leaf == nil {
		return nil, text, fmt.Errorf("certificate %s: %w", f.Cert, errNoLeaf)
	}
	return &read, text, nil
}

// Client is for a program of the same machine that calls the listener with these files by an address that may be another than the certificate is for: it
// accepts that certificate, as the files have it now, and else what the system's authorities have signed for the address.
func (f Files) Client() (*tls.Config, error) {
	pair, err := f.Load()
	if err != nil {
		return nil, err
	}
	return &tls.Config{
		MinVersion: tls.VersionTLS12, InsecureSkipVerify: true, //nolint:gosec // VerifyConnection does it
		VerifyConnection: func(s tls.ConnectionState) error {
			if len(s.PeerCertificates) > 0 && s.PeerCertificates[0].Equal(pair.Leaf) {
				return nil
			}
			between := x509.NewCertPool()
			for _, c := range s.PeerCertificates {
				between.AddCert(c)
			}
			if len(s.PeerCertificates) == 0 {
				return errNoLeaf
			}
			_, err := s.PeerCertificates[0].Verify(x509.VerifyOptions{DNSName: s.ServerName, Intermediates: between})
			return err
		},
	}, nil
}

// Keeper gives the pair to handshakes. It is safe for concurrent use.
type Keeper struct {
	files Files
	log   *slog.Logger
	pair  atomic.Pointer[tls.Certificate]

	text  []byte // of the files, as looked at last
	fault string // of that, as the log has it; "" = none
}

// New loads the pair for the first time.
func New(files Files, log *slog.Logger) (*Keeper, error) {
	pair, text, err := files.read()
	if err != nil {
		return nil, err
	}
	k := &Keeper{files: files, log: log, text: text}
	k.pair.Store(pair)
	return k, nil
}

// Config is for a listener that speaks HTTP/1.1 over TLS of a version or later (tls.VersionTLS12). Each handshake gets the pair of its time; connections
// that are there keep theirs.
func (k *Keeper) Config(version uint16) *tls.Config {
	return &tls.Config{
		MinVersion: version, NextProtos: []string{"http/1.1"},
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return k.pair.Load(), nil },
	}
}

// Expiry is when the certificate in use ends.
func (k *Keeper) Expiry() time.Time { return k.pair.Load().Leaf.NotAfter }

// lookEvery is how often the files are read. They are small; a clock of the file system that is coarse, links that are turned and files that are renamed
// make no difference then.
const lookEvery = 5 * time.Second

// Run takes over what the files hold until ctx ends.
func (k *Keeper) Run(ctx context.Context) {
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			k.look(ctx)
		}
	}
}

// look takes over a pair that is different. One that is not usable, such as a new certificate whose key is not there yet, is a line in the log, and
// the one before stays.
func (k *Keeper) look(ctx context.Context) {
	pair, text, err := k.files.read()
	if err != nil {
		if err.Error() != k.fault || !bytes.Equal(text, k.text) {
			k.log.WarnContext(ctx, "the TLS certificate was read again and is not usable: the one before stays in use",
				slog.Time("expires", k.Expiry()), slog.Any("error", err))
		}
		k.text, k.fault = text, err.Error()
		return
	}
	same := bytes.Equal(text, k.text)
	k.text, k.fault = text, ""
	if same {
		return
	}
	k.pair.Store(pair)
	k.log.InfoContext(ctx, "the TLS certificate was read again", slog.Time("expires", k.Expiry()))
}
