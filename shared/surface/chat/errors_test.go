package chat_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"hydrallm/shared/fault"
	"hydrallm/shared/surface/chat"
)

// both forms, all members, null where there is nothing.
func TestErrors(t *testing.T) {
	t.Parallel()
	f := &fault.Fault{Kind: fault.Refused, HTTPStatus: 422, Message: "안녕 \"x\"\n<b>", ErrorType: "t"}
	got := string(chat.Errors{}.AppendBody(nil, f, ""))
	require.Equal(t, `{"error":{"message":"안녕 \"x\"\n<b>","type":"t","param":null,"code":null},"detail":"안녕 \"x\"\n<b>"}`, got)
	require.True(t, json.Valid([]byte(got)))

	event := string(chat.Errors{}.AppendEvent(nil, fault.New(fault.Failed, "all upstreams failed")))
	require.Equal(t, `data: {"error":{"message":"all upstreams failed","type":"service_unavailable","param":null,"code":"all_upstreams_failed"}}`+"\n\n", event)
	require.Equal(t, event, string(chat.Errors{}.AppendEventOf(nil, chat.Errors{}.AppendBody(nil, fault.New(fault.Failed, "all upstreams failed"), ""))))
	require.Equal(t, string(chat.Errors{}.AppendEvent([]byte("x"), f)), string(chat.Errors{}.AppendEventOf([]byte("x"), []byte(got))))
}
