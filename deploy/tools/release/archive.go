package main

import (
	"archive/tar"
	"archive/zip"
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/klauspost/compress/gzip"
)

// epoch is the time of every file: the first one that a ZIP archive can hold.
var epoch = time.Date(1980, time.January, 1, 0, 0, 0, 0, time.UTC)

// file is one of an archive: what it holds is in a file or in data.
type file struct {
	name string
	path string
	data []byte
	mode fs.FileMode
	dir  bool
	user int // that owns it, and its group
}

func (f file) open() (io.ReadCloser, int64, error) {
	if f.path == "" {
		return io.NopCloser(bytes.NewReader(f.data)), int64(len(f.data)), nil
	}
	opened, err := os.Open(f.path)
	if err != nil {
		return nil, 0, err
	}
	info, err := opened.Stat()
	if err != nil {
		return nil, 0, errors.Join(err, opened.Close())
	}
	return opened, info.Size(), nil
}

func (f file) copyTo(w io.Writer) error {
	from, _, err := f.open()
	if err != nil {
		return err
	}
	_, err = io.Copy(w, from)
	return errors.Join(err, from.Close())
}

// writeTar writes an archive with the files in their order.
func writeTar(to io.Writer, files []file) error {
	w := tar.NewWriter(to)
	for _, f := range files {
		h := &tar.Header{Name: f.name, Mode: int64(f.mode), Typeflag: tar.TypeReg, ModTime: epoch, Uid: f.user, Gid: f.user, Format: tar.FormatUSTAR}
		if f.dir {
			h.Typeflag, h.Name = tar.TypeDir, f.name+"/"
		} else {
			from, size, err := f.open()
			if err != nil {
				return err
			}
			h.Size = size
			if err := from.Close(); err != nil {
				return err
			}
		}
		if err := w.WriteHeader(h); err != nil {
			return fmt.Errorf("%s: %w", f.name, err)
		}
		if f.dir {
			continue
		}
		if err := f.copyTo(w); err != nil {
			return fmt.Errorf("%s: %w", f.name, err)
		}
	}
	return w.Close()
}

func writeTarGz(to io.Writer, files []file) error {
	w, err := gzip.NewWriterLevel(to, gzip.DefaultCompression)
	if err != nil {
		return err
	}
	return errors.Join(writeTar(w, files), w.Close())
}

func writeZip(to io.Writer, files []file) error {
	w := zip.NewWriter(to)
	for _, f := range files {
		if f.dir {
			continue
		}
		h := &zip.FileHeader{Name: f.name, Method: zip.Deflate, Modified: epoch}
		h.SetMode(f.mode)
		entry, err := w.CreateHeader(h)
		if err != nil {
			return err
		}
		if err := f.copyTo(entry); err != nil {
			return fmt.Errorf("%s: %w", f.name, err)
		}
	}
	return w.Close()
}

// create writes an archive of the release.
func (r *release) create(name string, files []file, format func(io.Writer, []file) error) error {
	return r.fill(name, func(w io.Writer) error { return format(w, files) })
}

// makeDir makes a directory of the release, and those above it.
func makeDir(path string) error {
	return os.MkdirAll(path, 0o755) //nolint:gosec // a release is for everybody
}

// fill writes a file of the release.
func (r *release) fill(name string, content func(io.Writer) error) error {
	path := filepath.Join(r.to, filepath.FromSlash(name))
	if err := makeDir(filepath.Dir(path)); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644) //nolint:gosec // a release is for everybody, and the names are ours
	if err != nil {
		return err
	}
	w := bufio.NewWriter(f)
	if err := errors.Join(content(w), w.Flush(), f.Close()); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

func (r *release) write(name string, data []byte) error {
	return r.fill(name, func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
}

// sum gives the SHA-256 of a file of the release, in hexadecimal digits.
func (r *release) sum(name string) (string, error) {
	h := sha256.New()
	if err := (file{path: filepath.Join(r.to, filepath.FromSlash(name))}).copyTo(h); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// sums writes the checksums of everything, as sha256sum reads them.
func (r *release) sums() error {
	var names []string
	err := filepath.WalkDir(r.to, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(r.to, path)
		names = append(names, filepath.ToSlash(name))
		return err
	})
	if err != nil {
		return err
	}
	slices.Sort(names)
	var text strings.Builder
	for _, name := range names {
		sum, err := r.sum(name)
		if err != nil {
			return err
		}
		fmt.Fprintf(&text, "%s  %s\n", sum, name)
	}
	fmt.Fprintf(r.progress, "release: %d files in %s\n", len(names)+1, r.to)
	return r.write("SHA256SUMS", []byte(text.String()))
}
