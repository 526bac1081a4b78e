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

// Write writes a file in one step: whoever reads it sees all of it or none. Unless it may be replaced, one that is there is an error, ErrExists.
func Write(path string, data []byte, mode fs.FileMode, replace bool) (err error) {
	if !replace {
		if err := Free(path); err != nil {
			return err
		}
	}
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	_, err = f.Write(data)
	err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close())
	if err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	if !replace { // somebody may have made it in the meantime
		if err = os.Link(f.Name(), path); err == nil {
			return os.Remove(f.Name())
		}
		if errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("%s %w", path, ErrExists)
		}
	}
	if err = os.Rename(f.Name(), path); err != nil { // also on file systems without links
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return nil
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
