package fault_test

import (
	"errors"
	"fmt"
	"time"

	"hydrallm/shared/fault"
	"hydrallm/shared/surface/chat"
)

// A fault is what a client may know; its cause is for the log.
func ExampleFault() {
	err := fmt.Errorf("answering: %w", &fault.Fault{
		Kind: fault.Busy, Message: "all upstreams busy", RetryAfter: 1500 * time.Millisecond, Cause: errors.New("10.0.0.7: connection refused"),
	})
	f := fault.From(err)
	fmt.Println(f.Head().Status, f.Head().Header)
	fmt.Println(string(chat.Errors{}.AppendBody(nil, f, "")))
	fmt.Println("log:", f)
	// Output:
	// 503 [[Content-Type application/json] [Retry-After 2]]
	// {"error":{"message":"all upstreams busy","type":"service_unavailable","param":null,"code":"all_upstreams_busy","retry_after":2},"detail":"all upstreams busy"}
	// log: all upstreams busy: 10.0.0.7: connection refused
}

// An error that nobody declared tells a client nothing.
func ExampleFrom() {
	f := fault.From(errors.New("reading /etc/secret: permission denied"))
	fmt.Println(f.Status(), f.Message)
	// Output: 500 Internal server error
}
