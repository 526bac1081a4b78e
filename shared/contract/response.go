package contract

import "time"

// ResponseID gives the id of the response to a request. Those of its output items hold the id of the request too.
func ResponseID(request string) string { return prefixResponse + request }

const prefixResponse = "resp_"

// StoredResponse is the fact of a response that is kept for later requests. Facts of one response tell the same.
type StoredResponse struct {
	ID       string
	Previous string // id of the response that it goes on from; "" = none
	Owner    string // principal
	Input    []byte // array of the items of its own request, as received
	Response []byte // as the client got it
	At       time.Time
}
