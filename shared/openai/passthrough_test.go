package openai

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"net/textproto"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// of an object only the model changes, what the gateway alone knows is left out, and the operator's settings are filled in.
func TestPassthroughJSON(t *testing.T) {
	t.Parallel()
	patch, err := CompilePatch([]byte(`{"response_format":"wav"}`))
	require.NoError(t, err)
	defaults, err := CompilePatch([]byte(`{"voice":"alloy","speed":1.0}`))
	require.NoError(t, err)
	for body, want := range map[string]string{
		`{"model":"m", "input":"h\u00e9", "n":1.0, "x":{"model":1}}`: `{"model":"up", "input":"h\u00e9", "n":1.0, "x":{"model":1}}`,
		`{"input":"hi"}`: `{"input":"hi","model":"up"}`,
		`{"session_id":5,"model":null,"prompt":1}`: `{"model":"up","prompt":1}`,
	} {
		r, err := ScanPassthrough([]byte(body), "")
		require.NoError(t, err)
		require.Equal(t, want, string(r.AppendUpstream(nil, Rewrite{Model: "up"})))
	}
	r, err := ScanPassthrough([]byte(`{"model":"m","input":"hi","speed":2,"response_format":"mp3"}`), "")
	require.NoError(t, err)
	require.Equal(t, "m", r.Model)
	require.Equal(t, `{"model":"up","input":"hi","speed":2,"response_format":"wav","voice":"alloy"}`,
		string(r.AppendUpstream(nil, Rewrite{Model: "up", Patch: patch, Defaults: defaults})))

	for body, param := range map[string]string{
		``: "", `[]`: "", `{broken`: "", "{\"a\":\"\xff\"}": "", `{"model":5}`: "model", `{"model":"a","model":"b"}`: "model", `{"Model":"a"}`: "Model",
		`{"model":"a","x":1,"X":2}`: "X",
	} {
		_, err := ScanPassthrough([]byte(body), "")
		bad, ok := errors.AsType[*RequestError](err)
		require.True(t, ok, body)
		require.Equal(t, param, bad.Param, body)
	}
}

const formType = "multipart/form-data; boundary=XX"

// form writes a form, each field with its headers, in lines.
func form(fields ...string) string {
	var b strings.Builder
	for _, f := range fields {
		b.WriteString("--XX\r\n" + f + "\r\n")
	}
	return b.String() + "--XX--\r\n"
}

func named(name, value string) string {
	return "Content-Disposition: form-data; name=\"" + name + "\"\r\n\r\n" + value
}

const file = "Content-Disposition: form-data; name=\"file\"; filename=\"a \\\"b\\\"; name=model.wav\"\r\nContent-Type: audio/wav\r\n\r\n\x00\xff\r\n--X\r\n\r\nRIFF--\r\n"

// the model of a form is found wherever it is, and replaced in place.
func TestForm(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ kind, body, model, want string }{
		"model first":    {formType, form(named("model", "m"), file), "m", form(named("model", "up"), file)},
		"model last":     {formType, form(file, named("language", "de"), named("model", "mö/1")), "mö/1", form(file, named("language", "de"), named("model", "up"))},
		"no model":       {formType, form(file), "", form(file)},
		"an empty model": {formType, form(named("model", ""), file), "", form(named("model", "up"), file)},
		"others of similar names": {
			formType, form(named("Model", "a"), named("model[]", "b"), named(" model", "c"), named("model", "m")), "m",
			form(named("Model", "a"), named("model[]", "b"), named(" model", "c"), named("model", "up")),
		},
		"quoted boundary, any case": {`Multipart/Form-Data; charset=utf-8; BOUNDARY="XX"`, form(named("model", "m")), "m", form(named("model", "up"))},
		"padding and other headers": {
			formType, "--XX \t\r\ncontent-disposition:form-data;name=model\r\nContent-Transfer-Encoding: 8BIT\r\nX: y\r\n\r\nm\r\n--XX--", "m",
			"--XX \t\r\ncontent-disposition:form-data;name=model\r\nContent-Transfer-Encoding: 8BIT\r\nX: y\r\n\r\nup\r\n--XX--",
		},
		"an extended name of a file": {
			formType, form("Content-Disposition: form-data; name=\"f\"; filename*=UTF-8''%e2%82%ac\r\n\r\nx", named("model", "m")), "m",
			form("Content-Disposition: form-data; name=\"f\"; filename*=UTF-8''%e2%82%ac\r\n\r\nx", named("model", "up")),
		},
		"lines in the model": {formType, form(named("model", "a\r\nb\n")), "a\r\nb\n", form(named("model", "up"))},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, err := ScanPassthrough([]byte(c.body), c.kind)
			require.NoError(t, err)
			require.Equal(t, c.model, r.Model)
			require.Equal(t, c.want, string(r.AppendUpstream(nil, Rewrite{Model: "up"})))
			require.Equal(t, "x"+c.body, string(r.AppendUpstream([]byte("x"), Rewrite{})))
		})
	}
}

// what two readers could read in two ways is refused.
func TestFormRefuses(t *testing.T) {
	t.Parallel()
	model := named("model", "m")
	for name, c := range map[string]struct{ kind, body string }{
		"nothing":                          {formType, ""},
		"JSON":                             {formType, `{"model":"m"}`},
		"no boundary":                      {"multipart/form-data", form(model)},
		"an empty boundary":                {`multipart/form-data; boundary=""`, form(model)},
		"two boundaries":                   {"multipart/form-data; boundary=XX; boundary=YY", form(model)},
		"a long boundary":                  {"multipart/form-data; boundary=" + strings.Repeat("X", 71), form(model)},
		"a long type":                      {formType + "; x=" + strings.Repeat("y", MaxContentType), form(model)},
		"another boundary":                 {"multipart/form-data; boundary=YY", form(model)},
		"a preamble":                       {formType, "hello\r\n" + form(model)},
		"an empty line before":             {formType, "\r\n" + form(model)},
		"an epilogue":                      {formType, form(model) + "--YY"},
		"a form behind the end":            {formType, form(model) + form(model)},
		"no end":                           {formType, strings.TrimSuffix(form(model), "--XX--\r\n")},
		"cut":                              {formType, strings.TrimSuffix(form(model), "--\r\n")},
		"lines without a return":           {formType, strings.ReplaceAll(form(model), "\r\n", "\n")},
		"headers without a return":         {formType, form("Content-Disposition: form-data; name=\"a\"\nX: y\r\n\r\nm", model)},
		"a boundary in the content":        {formType, form(named("a", "b--XX"), model)},
		"a boundary in a bare line":        {formType, form(named("a", "b\n--XX\nContent-Disposition: form-data; name=\"model\"\n\nevil"), model)},
		"a boundary that goes on":          {formType, form(named("a", "b\r\n--XXX"), model)},
		"a boundary in the headers":        {formType, "--XX\r\nX: y\r\n" + form(model)},
		"a boundary at once":               {formType, "--XX\r\n--XX--\r\n"},
		"no headers":                       {formType, form("\r\n\r\nm", model)},
		"no empty line":                    {formType, form("Content-Disposition: form-data; name=\"a\"", model)},
		"headers that are too long":        {formType, form("X: "+strings.Repeat("y", maxFieldHeader)+"\r\n"+named("a", "b"), model)},
		"no name":                          {formType, form("Content-Disposition: form-data\r\n\r\nx", model)},
		"another disposition":              {formType, form("Content-Disposition: attachment; name=\"a\"\r\n\r\nx", model)},
		"two dispositions":                 {formType, form("Content-Disposition: form-data; name=\"a\"\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\nx", model)},
		"two names":                        {formType, form("Content-Disposition: form-data; name=\"a\"; name=\"model\"\r\n\r\nx", model)},
		"an extended name":                 {formType, form("Content-Disposition: form-data; name=\"model\"; name*=UTF-8''a\r\n\r\nx", model)},
		"a name in pieces":                 {formType, form("Content-Disposition: form-data; name*0=mod; name*1=el\r\n\r\nx")},
		"a name with a backslash":          {formType, form(named(`mod\el`, "x"), model)},
		"a name in percents":               {formType, form(named("mode%6c", "x"), model)},
		"a folded header":                  {formType, form("Content-Disposition: form-data;\r\n name=\"model\"\r\n\r\nx")},
		"a space before the colon":         {formType, form("Content-Disposition : form-data; name=\"model\"\r\n\r\nx", model)},
		"a NUL in a header":                {formType, form("X: \x00\r\n"+named("a", "b"), model)},
		"the model twice":                  {formType, form(model, named("a", "b"), model)},
		"the model encoded":                {formType, form("Content-Transfer-Encoding: base64\r\n" + named("model", "bQ=="))},
		"the model in no UTF-8":            {formType, form(named("model", "\xff"))},
		"more fields than anybody can use": {formType, form(append(slicesOf(named("a", "b"), maxFields), model)...)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := ScanPassthrough([]byte(c.body), c.kind)
			_, ok := errors.AsType[*RequestError](err)
			require.True(t, ok, "%v", err)
		})
	}
}

func slicesOf(text string, n int) []string {
	list := make([]string, n)
	for i := range list {
		list[i] = text
	}
	return list
}

func TestIsForm(t *testing.T) {
	t.Parallel()
	for kind, want := range map[string]bool{
		formType: true, "MULTIPART/form-data": true, "": false, "application/json": false, "multipart/mixed; boundary=x": false, "multipart/": false,
	} {
		require.Equal(t, want, IsForm(kind), kind)
	}
}

// whatever is taken, another reader finds the same model in it, and after the change the new one and every other field as it was.
func FuzzForm(f *testing.F) {
	for _, body := range []string{
		form(named("model", "m"), file), form(file), form(named("model", ""), named("x", "--X")), "--XX \r\nContent-Disposition: form-data; name=model\r\n\r\nm\r\n--XX--",
		form("Content-Disposition: form-data; name=\"f\"; filename*=UTF-8''%41\r\n\r\nx"), "--XX--", "--XX\r\n\r\n\r\n--XX--",
	} {
		f.Add([]byte(body), formType)
	}
	f.Add([]byte("--a b--"), `multipart/form-data; boundary="a b"`)
	f.Fuzz(func(t *testing.T, body []byte, kind string) {
		if !IsForm(kind) {
			return
		}
		r, err := ScanPassthrough(body, kind)
		if err != nil {
			_, ok := errors.AsType[*RequestError](err)
			require.True(t, ok)
			return
		}
		before := fields(t, body, kind)
		after := fields(t, r.AppendUpstream(nil, Rewrite{Model: "up"}), kind)
		require.Len(t, after, len(before))
		models := 0
		for i := range before {
			if before[i].name != "model" {
				require.Equal(t, before[i], after[i])
				continue
			}
			models++
			require.Equal(t, r.Model, before[i].content)
			require.Equal(t, "up", after[i].content)
			require.Equal(t, before[i].header, after[i].header)
		}
		require.LessOrEqual(t, models, 1)
		if models == 0 {
			require.Empty(t, r.Model)
		}
	})
}

type formField struct {
	name, content string
	header        textproto.MIMEHeader
}

// fields reads a form as Go's own reader does.
func fields(t *testing.T, body []byte, kind string) (all []formField) {
	t.Helper()
	_, params, err := mime.ParseMediaType(kind)
	require.NoError(t, err)
	r := multipart.NewReader(bytes.NewReader(body), params["boundary"])
	for {
		p, err := r.NextRawPart()
		if errors.Is(err, io.EOF) {
			return all
		}
		require.NoError(t, err)
		content, err := io.ReadAll(p)
		require.NoError(t, err)
		all = append(all, formField{p.FormName(), string(content), p.Header})
	}
}

func FuzzScanPassthrough(f *testing.F) {
	f.Add([]byte(`{"model":"m","input":"hi","session_id":"s"}`))
	f.Add([]byte(`{"model":null,"prompt":[1, 2.0]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		r, err := ScanPassthrough(body, "")
		if err != nil {
			_, ok := errors.AsType[*RequestError](err)
			require.True(t, ok)
			return
		}
		var sent map[string]json.RawMessage
		require.NoError(t, json.Unmarshal(r.AppendUpstream(nil, Rewrite{Model: "up"}), &sent))
		require.Equal(t, `"up"`, string(sent["model"]))
		require.NotContains(t, sent, "session_id")
	})
}
