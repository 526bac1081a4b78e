package fault_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"hydrallm/shared/fault"
)

// both forms, all members, null where there is nothing.
func TestAppendJSON(t *testing.T) {
	t.Parallel()
	f := &fault.Fault{Kind: fault.Refused, HTTPStatus: 422, Message: "안녕 \"x\"\n<b>", ErrorType: "t"}
	got := string(f.AppendJSON(nil))
	require.Equal(t, `{"error":{"message":"안녕 \"x\"\n<b>","type":"t","param":null,"code":null},"detail":"안녕 \"x\"\n<b>"}`, got)
	require.True(t, json.Valid([]byte(got)))

	event := string(fault.New(fault.Failed, "all upstreams failed").AppendEvent(nil))
	require.Equal(t, `data: {"error":{"message":"all upstreams failed","type":"service_unavailable","param":null,"code":"all_upstreams_failed"}}`+"\n\n", event)
}
