package modellist_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"hydrallm/services/ingress/internal/modellist"
)

// the list in Anthropic's words, a page at a time.
func TestPage(t *testing.T) {
	t.Parallel()
	var models []modellist.Model
	for i := range 5 {
		models = append(models, modellist.Model{ID: fmt.Sprintf("m\"%d", i), Capabilities: modellist.Capabilities{MaxTokens: new(100 * i)}})
	}
	l := modellist.New(models, nil, nil, time.Unix(1, 0))
	for name, tt := range map[string]struct {
		page  modellist.Page
		first int
		n     int
		more  bool
	}{
		"all":              {modellist.Page{}, 0, 5, false},
		"the first":        {modellist.Page{Limit: 2}, 0, 2, true},
		"the next":         {modellist.Page{After: `m"1`, Limit: 2}, 2, 2, true},
		"the last":         {modellist.Page{After: `m"3`, Limit: 2}, 4, 1, false},
		"those before":     {modellist.Page{Before: `m"4`, Limit: 2}, 2, 2, true},
		"all before":       {modellist.Page{Before: `m"2`, Limit: 2}, 0, 2, false},
		"between":          {modellist.Page{After: `m"0`, Before: `m"4`, Limit: 2}, 1, 2, true},
		"nothing":          {modellist.Page{After: `m"4`}, 0, 0, false},
		"the wrong way":    {modellist.Page{After: `m"4`, Before: `m"1`}, 0, 0, false},
		"just as many":     {modellist.Page{Limit: 5}, 0, 5, false},
		"more than exists": {modellist.Page{Limit: 1000}, 0, 5, false},
	} {
		body, ok := l.Now().Page(tt.page)
		require.True(t, ok, name)
		var got struct {
			Data    []struct{ ID string }
			HasMore bool    `json:"has_more"`
			FirstID *string `json:"first_id"`
			LastID  *string `json:"last_id"`
		}
		require.NoError(t, json.Unmarshal(body, &got), name)
		require.Len(t, got.Data, tt.n, name)
		require.Equal(t, tt.more, got.HasMore, name)
		if tt.n == 0 {
			require.Nil(t, got.FirstID)
			require.Nil(t, got.LastID)
			continue
		}
		require.Equal(t, fmt.Sprintf(`m"%d`, tt.first), *got.FirstID, name)
		require.Equal(t, fmt.Sprintf(`m"%d`, tt.first+tt.n-1), *got.LastID, name)
		require.Equal(t, *got.FirstID, got.Data[0].ID)
	}
	_, ok := l.Now().Page(modellist.Page{After: "x"})
	require.False(t, ok)
	_, ok = l.Now().Page(modellist.Page{Before: "x"})
	require.False(t, ok)
	body, ok := l.Now().Entry(`m"1`)
	require.True(t, ok)
	require.JSONEq(t, `{"type":"model","id":"m\"1","display_name":"m\"1","created_at":"1970-01-01T00:00:01Z","max_input_tokens":100,"max_tokens":null}`, string(body))
	_, ok = l.Now().Entry("x")
	require.False(t, ok)
}
