package process

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"time"
)

// healthcheckLimit bounds one look. Docker asks again.
const healthcheckLimit = 3 * time.Second

// Healthcheck asks an HTTP server on this machine whether it is well: its port, and the path that has to answer 200, /readyz if there is none. Images
// have nothing but the binary, which asks itself.
func Healthcheck(ctx context.Context, args []string) error {
	if len(args) == 0 || len(args) > 2 {
		return errors.New("healthcheck wants a port, and a path if it is not /readyz")
	}
	path := "/readyz"
	if len(args) == 2 {
		path = args[1]
	}
	ctx, cancel := context.WithTimeout(ctx, healthcheckLimit)
	defer cancel()
	status, err := ask(ctx, "http://127.0.0.1:"+args[0]+path)
	if err == nil && status == http.StatusBadRequest { // what a port says that speaks HTTPS
		status, err = ask(ctx, "https://127.0.0.1:"+args[0]+path)
	}
	if err != nil {
		return fmt.Errorf("healthcheck: %w", err)
	}
	if status != http.StatusOK {
		return fmt.Errorf("healthcheck: %s answers %d %s", path, status, http.StatusText(status))
	}
	return nil
}

// ask gives the status of an answer. No proxy of the environment is asked.
func ask(ctx context.Context, url string) (int, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody) //nolint:gosec // the operator names a port of this machine
	if err != nil {
		return 0, err
	}
	client := http.Client{Transport: &http.Transport{
		DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // the certificate is for another name than this machine's own
	}}
	resp, err := client.Do(req) //nolint:gosec // of this machine
	if err != nil {
		return 0, err
	}
	return resp.StatusCode, resp.Body.Close() // nothing of it is read
}
