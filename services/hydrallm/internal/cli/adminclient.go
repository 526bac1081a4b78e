package cli

import (
	"errors"
	"net/http"

	"hydrallm/shared/certificate"
	"hydrallm/shared/config"
)

// adminClient speaks to the admin routes of a running gateway. Beside the authorities of the system it trusts the certificate of the configuration.
func adminClient(server config.Server) (*http.Client, error) {
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment}
	if server.TLS.On() {
		trust, err := certificate.Files{Cert: server.TLS.Cert, Key: server.TLS.Key}.Client()
		if err != nil {
			return nil, err
		}
		transport.TLSClientConfig = trust
	}
	return &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error {
		return errors.New("it redirects, and the admin key is not for anybody else")
	}}, nil
}
