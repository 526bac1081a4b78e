package fetch

import (
	"crypto/tls"
	"crypto/x509"
	"time"

	"hydrallm/services/enricher/internal/guard"
)

// NewPatient makes a fetcher with time for the slowest machine.
func NewPatient(g *guard.Guard, cfg Config) *Fetcher {
	return newFetcher(g, cfg, limits{total: time.Hour, silence: time.Hour})
}

// Trust has f believe in the certificate of a test server.
func (f *Fetcher) Trust(cert *x509.Certificate) {
	roots := x509.NewCertPool()
	roots.AddCert(cert)
	f.transport.TLSClientConfig = &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
}
