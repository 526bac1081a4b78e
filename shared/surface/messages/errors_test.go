package messages_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"hydrallm/shared/contract"
	"hydrallm/shared/fault"
	"hydrallm/shared/openai"
	"hydrallm/shared/surface/messages"
)

// errors in Anthropic's form; a context that is exceeded begins with the words that agents look for.
func TestErrors(t *testing.T) {
	t.Parallel()
	for want, f := range map[string]*fault.Fault{
		`{"type":"error","error":{"type":"authentication_error","message":"a \"b\""},"request_id":"r"}`:                       {Kind: fault.Unauthorized, Message: `a "b"`},
		`{"type":"error","error":{"type":"not_found_error","message":"m"},"request_id":"r"}`:                                  {Kind: fault.ModelNotFound, Message: "m"},
		`{"type":"error","error":{"type":"invalid_request_error","message":"m"},"request_id":"r"}`:                            {Kind: fault.MethodNot, Message: "m"},
		`{"type":"error","error":{"type":"request_too_large","message":"m"},"request_id":"r"}`:                                {Kind: fault.TooLarge, Message: "m"},
		`{"type":"error","error":{"type":"rate_limit_error","message":"m"},"request_id":"r"}`:                                 {Kind: fault.RateLimited, Message: "m"},
		`{"type":"error","error":{"type":"overloaded_error","message":"m"},"request_id":"r"}`:                                 {Kind: fault.Busy, Message: "m"},
		`{"type":"error","error":{"type":"api_error","message":"m"},"request_id":"r"}`:                                        {Kind: fault.Internal, Message: "m"},
		`{"type":"error","error":{"type":"api_error","message":"n"},"request_id":"r"}`:                                        {Kind: fault.UpstreamAuth, Message: "n"},
		`{"type":"error","error":{"type":"billing_error","message":"m"},"request_id":"r"}`:                                    {Kind: fault.Refused, HTTPStatus: 402, Message: "m"},
		`{"type":"error","error":{"type":"permission_error","message":"m"},"request_id":"r"}`:                                 {Kind: fault.Refused, HTTPStatus: 403, Message: "m"},
		`{"type":"error","error":{"type":"timeout_error","message":"m"},"request_id":"r"}`:                                    {Kind: fault.Refused, HTTPStatus: 504, Message: "m"},
		`{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 9 tokens"},"request_id":"r"}`: {Kind: fault.Refused, Message: "9 tokens", TooLong: true},
		`{"type":"error","error":{"type":"invalid_request_error","message":"Prompt is too long: 9 > 8"},"request_id":"r"}`:    {Kind: fault.Refused, Message: "Prompt is too long: 9 > 8", TooLong: true},
	} {
		body := messages.Errors{}.AppendBody(nil, f, "r")
		require.Equal(t, want, string(body))
		require.Equal(t, "event: error\ndata: "+want+"\n\n", string(messages.Errors{}.AppendEventOf(nil, body)))
	}
	// The helpers of the SDKs know by the details that they have to send all messages.
	_, err := messages.Form{}.Chat([]byte(`{"thread":{"type":"create"},"messages":[{"role":"user","content":"x"}]}`))
	var bad *openai.RequestError
	require.ErrorAs(t, err, &bad)
	body := messages.Errors{}.AppendBody(nil, &fault.Fault{Kind: fault.Invalid, Message: bad.Message, Code: bad.Code}, "")
	require.Contains(t, string(body), `"details":{"error_code":"thread_unsupported_request"}}`)
	body = messages.Errors{}.AppendBody(nil, &fault.Fault{Kind: fault.Refused, Message: "m", Details: []byte(`{"error_code":"thread_not_found"}`)}, "")
	require.Contains(t, string(body), `"message":"m","details":{"error_code":"thread_not_found"}}`)
	require.NoError(t, messages.Form{}.Scan([]byte(`{"thread":{"type":"continue","previous_message_id":"m"},"messages":[]}`), &contract.Request{}))

	f := fault.New(fault.Internal, "x")
	require.Equal(t, "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"api_error\",\"message\":\"x\"}}\n\n", string(messages.Errors{}.AppendEvent(nil, f)))
}
