package fetch

import (
	"crypto/tls"
	"crypto/x509"
)

// Trust has f believe in the certificate of a test server.
func (f *Fetcher) Trust(cert *x509.Certificate) {
	roots := x509.NewCertPool()
	roots.AddCert(cert)
	f.transport.TLSClientConfig = &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
}
