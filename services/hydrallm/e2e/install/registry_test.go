//go:build e2e

package install

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha512"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// registry serves packages as npm's registry does, so that `npx hydrallm` finds them by their names.
func registry(t *testing.T, dir string) string {
	t.Helper()
	files := map[string][]byte{} // by path; npm writes the slash of a name as %2f
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		data, ok := files[r.URL.Path]
		if !ok {
			w.WriteHeader(http.StatusNotFound)
		}
		_, _ = w.Write(data)
	}))
	url := "http://" + server.Listener.Addr().String()
	t.Cleanup(server.Close)
	packages, err := filepath.Glob(filepath.Join(dir, "*.tgz"))
	require.NoError(t, err)
	require.NotEmpty(t, packages)
	for _, path := range packages {
		data, err := os.ReadFile(path)
		require.NoError(t, err)
		manifest := packageJSON(t, data)
		name, version := manifest["name"].(string), manifest["version"].(string)
		sum := sha512.Sum512(data)
		manifest["dist"] = map[string]string{
			"tarball": url + "/-/" + filepath.Base(path), "integrity": "sha512-" + base64.StdEncoding.EncodeToString(sum[:]),
		}
		document, err := json.Marshal(map[string]any{
			"name": name, "dist-tags": map[string]string{"latest": version}, "versions": map[string]any{version: manifest},
		})
		require.NoError(t, err)
		files["/"+name], files["/-/"+filepath.Base(path)] = document, data
	}
	server.Start()
	return url
}

// packageJSON reads the manifest of a package.
func packageJSON(t *testing.T, data []byte) (manifest map[string]any) {
	t.Helper()
	unzipped, err := gzip.NewReader(bytes.NewReader(data))
	require.NoError(t, err)
	for r := tar.NewReader(unzipped); ; {
		h, err := r.Next()
		require.NoError(t, err)
		if h.Name == "package/package.json" {
			text, err := io.ReadAll(r)
			require.NoError(t, err)
			require.NoError(t, json.Unmarshal(text, &manifest))
			return manifest
		}
	}
}
