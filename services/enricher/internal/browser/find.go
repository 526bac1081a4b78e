package browser

import (
	"fmt"
	"os/exec"
	"runtime"
)

// names are those that Chromium has on the systems where it can be driven.
func names() []string {
	found := []string{
		"chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "chromium-headless-shell", "chrome-headless-shell", "headless-shell",
		"microsoft-edge",
	}
	if runtime.GOOS == "darwin" {
		found = append(found, "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome", "/Applications/Chromium.app/Contents/MacOS/Chromium")
	}
	return found
}

// find gives the path of the program: the one that was given, or the first of the usual ones that is there.
func find(given string) (string, error) {
	if given != "" {
		path, err := exec.LookPath(given)
		if err != nil {
			return "", fmt.Errorf("%w: %w", ErrNone, err)
		}
		return path, nil
	}
	for _, name := range names() {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("%w: no program of the usual names is there", ErrNone)
}
