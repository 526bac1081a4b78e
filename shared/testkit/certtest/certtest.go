// Package certtest makes TLS certificates for servers of tests.
package certtest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Pair is a certificate for 127.0.0.1 and localhost, signed by itself, with its key.
type Pair struct {
	Serial    int64
	Cert, Key []byte // PEM
}

// New makes a pair that is valid for a day, with a serial number to know it by.
func New(tb testing.TB, serial int64) Pair {
	tb.Helper()
	return Until(tb, serial, time.Now().Add(24*time.Hour))
}

// Until is New for a certificate that ends at a time.
func Until(tb testing.TB, serial int64, end time.Time) Pair {
	tb.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(tb, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: "test"}, NotBefore: end.AddDate(-1, 0, 0), NotAfter: end,
		DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	require.NoError(tb, err)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(tb, err)
	return Pair{
		Serial: serial, Cert: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert}),
		Key: pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}),
	}
}

// Write puts the pair into two files.
func (p Pair) Write(tb testing.TB, cert, key string) {
	tb.Helper()
	require.NoError(tb, os.WriteFile(cert, p.Cert, 0o600))
	require.NoError(tb, os.WriteFile(key, p.Key, 0o600))
}

// Pool trusts the pairs and nobody else.
func Pool(pairs ...Pair) *x509.CertPool {
	pool := x509.NewCertPool()
	for _, p := range pairs {
		pool.AppendCertsFromPEM(p.Cert)
	}
	return pool
}
