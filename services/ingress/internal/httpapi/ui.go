package httpapi

import (
	"bytes"
	"strings"

	"github.com/valyala/fasthttp"

	"hydrallm/services/ingress/internal/ui"
	"hydrallm/shared/config"
	"hydrallm/shared/fault"
)

const pathUI = "/ui"

// Headers of all files for browsers: they can be nobody's frame, say nobody where they were, and are nothing but what they say.
var fileHeaders = [...][2]string{
	{"Content-Security-Policy", ui.PolicyHeader},
	{"X-Content-Type-Options", "nosniff"},
	{"X-Frame-Options", "DENY"},
	{"Referrer-Policy", "no-referrer"},
	{"Cross-Origin-Opener-Policy", "same-origin"},
	{"Cross-Origin-Resource-Policy", "same-origin"},
	{"Permissions-Policy", "camera=(), geolocation=(), microphone=()"},
}

// ui serves the files of the web interface. They hold nothing that needs a key.
func (a *API) ui(x *exchange, path string) error {
	x.route = routeUI
	if err := x.allow(get); err != nil {
		return err
	}
	if path == pathUI {
		return x.toFolder("ui/")
	}
	file := ui.Files()[strings.TrimPrefix(path, pathUI+"/")]
	if path == pathUI+"/" {
		if file = ui.Page(a.locale()); a.Demo != nil {
			file = ui.DemoPage(a.locale())
		}
	}
	if file == nil {
		return fault.New(fault.NotFound, "There is no such file of the web interface")
	}
	x.file(file)
	return nil
}

// toFolder sends a browser on to the folder that it has named without a slash. The address is relative, since a proxy may have taken away what is before it.
func (x *exchange) toFolder(name string) error {
	x.Response.Header.Set(fasthttp.HeaderLocation, name)
	x.SetStatusCode(fasthttp.StatusPermanentRedirect)
	return nil
}

// file answers with a file for browsers.
func (x *exchange) file(file *ui.File) {
	h := &x.Response.Header
	for _, field := range fileHeaders {
		h.Set(field[0], field[1])
	}
	h.Set(fasthttp.HeaderETag, file.ETag)
	if file.Immutable {
		h.Set(fasthttp.HeaderCacheControl, "public, max-age=31536000, immutable")
	} else {
		h.Set(fasthttp.HeaderCacheControl, "no-cache")
	}
	h.Set(fasthttp.HeaderVary, fasthttp.HeaderAcceptEncoding)
	if matches(x.Request.Header.Peek(fasthttp.HeaderIfNoneMatch), file.ETag) {
		x.SetStatusCode(fasthttp.StatusNotModified)
		return
	}
	h.SetContentType(file.Type)
	body := file.Body
	if file.Gzip != nil && x.Request.Header.HasAcceptEncoding("gzip") {
		h.Set(fasthttp.HeaderContentEncoding, "gzip")
		body = file.Gzip
	}
	x.Response.SetBodyRaw(body)
}

// locale is the language that the gateway was told to speak, "" for none.
func (a *API) locale() string {
	for _, s := range a.Settings.Config().Live() {
		if text, ok := s.Value.(string); ok && s.Name == settingLocale && s.Origin != config.ByDefault {
			return text
		}
	}
	return ""
}

// matches says whether a list of tags, which proxies may have made weak, holds one.
func matches(list []byte, tag string) bool {
	for given := range bytes.SplitSeq(list, []byte(",")) {
		if given = bytes.TrimPrefix(bytes.TrimSpace(given), []byte("W/")); string(given) == tag || string(given) == "*" {
			return true
		}
	}
	return false
}
