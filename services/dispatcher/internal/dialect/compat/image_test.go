package compat_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"hydrallm/services/dispatcher/internal/dialect/compat"
)

// C-25: where no model can see, the model is told that there was something.
func TestWithoutImages(t *testing.T) {
	t.Parallel()
	const omitted = `{"type":"text","text":"[image omitted: no available model accepts images]"}`
	for name, tc := range map[string]struct {
		in, out string
		n       int
	}{
		"none":              {request(hi, ``), request(hi, ``), 0},
		"in words only":     {request(`{"role":"user","content":"image_url"}`, ``), request(`{"role":"user","content":"image_url"}`, ``), 0},
		"between texts":     {request(`{"role":"user","content":[{"type":"text","text":"a"}, {"type":"image_url","image_url":{"url":"data:x"}} ,{"type":"text","text":"b"}]}`, ``), request(`{"role":"user","content":[{"type":"text","text":"a"}, `+omitted+` ,{"type":"text","text":"b"}]}`, ``), 1},
		"an address alone":  {request(`{"content":[{"image_url":"data:x","type":"image_url"}],"role":"user"}`, ``), request(`{"content":[`+omitted+`],"role":"user"}`, ``), 1},
		"a part alone":      {request(`{"role":"user","content":{"type":"image_url","image_url":{"url":"x"}}}`, ``), request(`{"role":"user","content":`+omitted+`}`, ``), 1},
		"an escaped type":   {request(`{"role":"user","content":[{"type":"image\u005furl"}]}`, ``), request(`{"role":"user","content":[`+omitted+`]}`, ``), 1},
		"several messages":  {request(`{"role":"user","content":[{"type":"image_url"},{"type":"image_url"}]},{"role":"tool","content":[{"type":"image_url"}]}`, `,"x":1.0`), request(`{"role":"user","content":[`+omitted+`,`+omitted+`]},{"role":"tool","content":[`+omitted+`]}`, `,"x":1.0`), 3},
		"outside of a text": {`{"content":[{"type":"image_url"}],"messages":[7,{"content":["x",{"type":"file"}]}]}`, `{"content":[{"type":"image_url"}],"messages":[7,{"content":["x",{"type":"file"}]}]}`, 0},
		"no JSON":           {`{"messages":[{"content":[{"type":"image_url"}]`, `{"messages":[{"content":[{"type":"image_url"}]`, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := []byte(tc.in)
			out, n := compat.WithoutImages(in)
			require.Equal(t, tc.out, string(out))
			require.Equal(t, tc.n, n)
			require.Equal(t, tc.in, string(in))
			if n == 0 {
				require.Same(t, &in[0], &out[0])
			}
		})
	}
}
