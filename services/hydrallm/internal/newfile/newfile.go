// Package newfile writes files that must be whole, and must not take the place of others by mistake.
package newfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// ErrExists is for a file that is there already.
var ErrExists = errors.New("is there already")

// File is a file that is being written: under a name of its own, which no other can have, in the directory where it belongs.
type File struct {
	f       *os.File
	path    string
	replace bool
}

// Create begins a file. Commit gives it its name, Discard drops it; the caller must call one of them. Unless it may be replaced, one that is there is an
// error, ErrExists.
func Create(path string, mode fs.FileMode, replace bool) (*File, error) {
	if !replace {
		if err := Free(path); err != nil {
			return nil, err
		}
	}
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return nil, fmt.Errorf("writing %s: %w", path, err)
	}
	file := &File{f, path, replace}
	if err := f.Chmod(mode); err != nil {
		return nil, errors.Join(fmt.Errorf("writing %s: %w", path, err), file.Discard())
	}
	return file, nil
}

// Write writes more of the file.
func (f *File) Write(data []byte) (int, error) { return f.f.Write(data) }

// Discard drops the file.
func (f *File) Discard() error {
	_ = f.f.Close() // Commit may have closed it
	return os.Remove(f.f.Name())
}

// Commit gives the file its name: whoever reads it sees all of it or none. After an error it is gone.
func (f *File) Commit() (err error) {
	defer func() {
		if err != nil {
			err = errors.Join(err, f.Discard())
		}
	}()
	if err = errors.Join(f.f.Sync(), f.f.Close()); err != nil {
		return fmt.Errorf("writing %s: %w", f.path, err)
	}
	if !f.replace { // somebody may have made it in the meantime
		if err = os.Link(f.f.Name(), f.path); err == nil {
			_ = os.Remove(f.f.Name()) // the file is there, under both names
			return nil
		}
		if errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("%s %w", f.path, ErrExists)
		}
	}
	if err = os.Rename(f.f.Name(), f.path); err != nil { // also on file systems without links
		return fmt.Errorf("writing %s: %w", f.path, err)
	}
	return nil
}

// Write writes a file in one step.
func Write(path string, data []byte, mode fs.FileMode, replace bool) error {
	f, err := Create(path, mode, replace)
	if err != nil {
		return err
	}
	if _, err := f.Write(data); err != nil {
		return errors.Join(fmt.Errorf("writing %s: %w", path, err), f.Discard())
	}
	return f.Commit()
}

// Free says whether there is no file at path: an error is ErrExists, or why that can't be told.
func Free(path string) error {
	switch _, err := os.Lstat(path); {
	case err == nil:
		return fmt.Errorf("%s %w", path, ErrExists)
	case errors.Is(err, fs.ErrNotExist):
		return nil
	default:
		return fmt.Errorf("looking for %s: %w", path, err)
	}
}
