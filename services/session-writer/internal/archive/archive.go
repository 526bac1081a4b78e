// Package archive is the form of a backup: a tar, compressed with gzip, whose parts are followed by a manifest that has the digest of each. An archive
// that was cut off has no manifest.
package archive

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// Format is the version of the form that this package writes, and the newest that it reads.
const Format = 1

// Manifest is the last part of an archive.
type Manifest struct {
	Format  int       `json:"format"`
	Version string    `json:"version"` // of the program
	Schema  int64     `json:"schema"`  // of the database
	Time    time.Time `json:"time"`    // when it was begun
	Note    string    `json:"note"`    // for who looks into it
	Parts   []Part    `json:"parts"`   // in the order of the archive
}

// Part is one file of the archive.
type Part struct {
	Name   string `json:"name"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
}

const (
	manifestName = "manifest.json"
	maxPart      = 256 << 20 // bytes; those of this program are 1 MiB and a row
	maxParts     = 1 << 20
)

// Errors of Read.
var (
	ErrDamaged = errors.New("the backup is damaged")
	ErrCutOff  = errors.New("the backup is cut off")
	ErrFormat  = errors.New("the backup is of a newer version of the program")
)

// Writer writes an archive.
type Writer struct {
	zip   *gzip.Writer
	tar   *tar.Writer
	time  time.Time
	parts []Part
}

// NewWriter begins an archive.
func NewWriter(w io.Writer, now time.Time) *Writer {
	z := gzip.NewWriter(w)
	return &Writer{zip: z, tar: tar.NewWriter(z), time: now}
}

// Add writes a part.
func (w *Writer) Add(name string, data []byte) error {
	sum := sha256.Sum256(data)
	w.parts = append(w.parts, Part{Name: name, Size: int64(len(data)), SHA256: hex.EncodeToString(sum[:])})
	return w.file(name, data)
}

func (w *Writer) file(name string, data []byte) error {
	if err := w.tar.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Size: int64(len(data)), Mode: 0o600, ModTime: w.time}); err != nil {
		return fmt.Errorf("writing the backup: %w", err)
	}
	if _, err := w.tar.Write(data); err != nil {
		return fmt.Errorf("writing the backup: %w", err)
	}
	return nil
}

// Close writes the manifest, whose Format, Time and Parts it fills in, and ends the archive.
func (w *Writer) Close(m Manifest) error {
	m.Format, m.Time, m.Parts = Format, w.time, w.parts
	text, err := json.MarshalIndent(m, "", " ")
	if err != nil {
		return fmt.Errorf("writing the backup: %w", err)
	}
	return errors.Join(w.file(manifestName, append(text, '\n')), w.tar.Close(), w.zip.Close())
}

// Read reads an archive from its begin to its end and hands each part to take. Only what it gives at the end says whether the parts are sound: call it once
// with a take that does nothing first. The error wraps ErrDamaged, ErrCutOff or ErrFormat, and names the part.
func Read(r io.Reader, take func(name string, data []byte) error) (m Manifest, err error) {
	at := "its begin"
	zip, err := gzip.NewReader(r)
	if err != nil {
		return m, wrong(at, err)
	}
	files := tar.NewReader(zip)
	var found []Part
	for {
		head, err := files.Next()
		if errors.Is(err, io.EOF) {
			return m, fmt.Errorf("%w: it ends behind %s", ErrCutOff, at)
		}
		if err != nil {
			return m, wrong("behind "+at, err)
		}
		at = "part " + shown(head.Name)
		if head.Typeflag != tar.TypeReg || head.Size > maxPart || len(found) == maxParts {
			return m, fmt.Errorf("%w: %s is no part of one", ErrDamaged, at)
		}
		var data bytes.Buffer
		if _, err := io.CopyN(&data, files, head.Size); err != nil {
			return m, wrong("in "+at, err)
		}
		if head.Name == manifestName {
			return m, finish(&m, data.Bytes(), found, files, zip)
		}
		sum := sha256.Sum256(data.Bytes())
		found = append(found, Part{Name: head.Name, Size: head.Size, SHA256: hex.EncodeToString(sum[:])})
		if err := take(head.Name, data.Bytes()); err != nil {
			return m, err
		}
	}
}

// finish reads the manifest and compares it with what was found; nothing may come behind it.
func finish(m *Manifest, text []byte, found []Part, files *tar.Reader, zip io.Reader) error {
	if err := json.Unmarshal(text, m); err != nil {
		return wrong("in its manifest", err)
	}
	m.Version = shown(m.Version)
	switch {
	case m.Format > Format:
		return fmt.Errorf("%w: form %d, by version %s", ErrFormat, m.Format, m.Version)
	case m.Format < 1:
		return fmt.Errorf("%w: its manifest has no form", ErrDamaged)
	}
	for i := range max(len(m.Parts), len(found)) {
		switch {
		case i >= len(found):
			return fmt.Errorf("%w: part %s is missing", ErrDamaged, shown(m.Parts[i].Name))
		case i >= len(m.Parts) || m.Parts[i] != found[i]:
			return fmt.Errorf("%w: part %s is not what was written", ErrDamaged, shown(found[i].Name))
		}
	}
	switch _, err := files.Next(); {
	case err == nil:
		return fmt.Errorf("%w: something comes behind its manifest", ErrDamaged)
	case !errors.Is(err, io.EOF):
		return wrong("behind its manifest", err)
	}
	if _, err := io.Copy(io.Discard, zip); err != nil { // the check sum of all of it
		return wrong("at its end", err)
	}
	return nil
}

// wrong says what is wrong with an archive, and where.
func wrong(where string, err error) error {
	kind := ErrDamaged
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		kind = ErrCutOff
	}
	return fmt.Errorf("%w %s: %w", kind, where, err)
}

// shown is a name for a message.
func shown(name string) string {
	if len(name) > 80 || slices.ContainsFunc([]rune(name), func(c rune) bool { return c < ' ' || c > '~' }) {
		return fmt.Sprintf("%.80q", name)
	}
	return name
}

// Section gives what a part is about: the name between its first slash and its number, such as "usage_metrics" of "database/000012-usage_metrics".
func Section(part string) (kind, name string) {
	kind, rest, _ := strings.Cut(part, "/")
	_, name, _ = strings.Cut(rest, "-")
	return kind, name
}
