package process

import (
	"context"
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
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://127.0.0.1:"+args[0]+path, http.NoBody) //nolint:gosec // the operator names a port of this machine
	if err != nil {
		return fmt.Errorf("healthcheck: %w", err)
	}
	// No proxy of the environment is asked.
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req) //nolint:gosec // of this machine
	if err != nil {
		return fmt.Errorf("healthcheck: %w", err)
	}
	defer resp.Body.Close() //nolint:errcheck // nothing of it is read
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("healthcheck: %s answers %s", path, resp.Status)
	}
	return nil
}
