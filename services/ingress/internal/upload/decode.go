package upload

import (
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// decoders by content encoding; nil for a body that is not encoded.
var decoders = map[string]func(src io.Reader, limit int) ([]byte, error){
	"": nil, "identity": nil, "gzip": gunzip, "x-gzip": gunzip, "zstd": unzstd,
}

var gzipReaders sync.Pool // of *gzip.Reader

func gunzip(src io.Reader, limit int) ([]byte, error) {
	r, ok := gzipReaders.Get().(*gzip.Reader)
	if !ok {
		r = new(gzip.Reader)
	}
	defer gzipReaders.Put(r)
	if err := r.Reset(src); err != nil {
		return nil, fmt.Errorf("reading the gzip header: %w", err)
	}
	return readAll(r, 0, limit)
}

// maxWindow bounds the memory of a zstd frame; encoders use more only when they are told to.
const maxWindow = 8 << 20

var zstdReaders sync.Pool // of *zstd.Decoder

func unzstd(src io.Reader, limit int) ([]byte, error) {
	r, ok := zstdReaders.Get().(*zstd.Decoder)
	if !ok {
		var err error
		// One decoder at a time works without goroutines, so that a forgotten one is just garbage.
		r, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow), zstd.WithDecoderLowmem(true))
		if err != nil {
			return nil, fmt.Errorf("making a zstd decoder: %w", err)
		}
	}
	if err := r.Reset(src); err != nil {
		return nil, fmt.Errorf("reading the zstd header: %w", err)
	}
	body, err := readAll(r, 0, limit)
	if errReset := r.Reset(nil); errReset == nil || errors.Is(errReset, zstd.ErrDecoderNilInput) {
		zstdReaders.Put(r)
	}
	return body, err
}
