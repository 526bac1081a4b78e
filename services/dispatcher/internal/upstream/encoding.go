package upstream

import (
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// decode gives the plain body. Gzip is read even where it was not asked for, since some servers send it anyway; another encoding is an error.
// Some servers put the character set there, or say that there is none.
func decode(resp *http.Response) (io.Reader, error) {
	switch encoding := strings.ToLower(strings.TrimSpace(resp.Header.Get("Content-Encoding"))); encoding {
	case "", "identity", "none", "utf-8", "utf8":
		return resp.Body, nil
	case "gzip", "x-gzip":
		return &lazyGzip{src: resp.Body}, nil
	default:
		return nil, fmt.Errorf("%w: %.20q", ErrEncoding, encoding)
	}
}

// lazyGzip opens the gzip stream at the first read, because opening it waits for the first bytes of the body.
type lazyGzip struct {
	src io.Reader
	zr  *gzip.Reader
}

func (l *lazyGzip) Read(p []byte) (int, error) {
	if l.zr == nil {
		zr, err := gzip.NewReader(l.src)
		if err != nil {
			return 0, err // io.EOF stays as it is, as readers of an io.Reader expect
		}
		l.zr = zr
	}
	return l.zr.Read(p)
}
