package chat_test

import (
	"fmt"
	"time"

	"hydrallm/shared/fault"
	"hydrallm/shared/surface/chat"
)

// An error is a body of its own before the answer has begun, and an event afterwards.
func ExampleErrors() {
	f := &fault.Fault{Kind: fault.Failed, Message: "all upstreams failed", RetryAfter: 90 * time.Second}
	fmt.Println(string(chat.Errors{}.AppendBody(nil, f, "")))
	fmt.Print(string(chat.Errors{}.AppendEvent(nil, f)))
	// Output:
	// {"error":{"message":"all upstreams failed","type":"service_unavailable","param":null,"code":"all_upstreams_failed","retry_after":90},"detail":"all upstreams failed"}
	// data: {"error":{"message":"all upstreams failed","type":"service_unavailable","param":null,"code":"all_upstreams_failed","retry_after":90}}
}
