package main

import (
	"encoding/json"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
)

// npmNames are what Node calls systems and processors.
var npmNames = map[string]string{"linux": "linux", "darwin": "darwin", "windows": "win32", "amd64": "x64", "arm64": "arm64"}

// npmName is the package that holds the binary of a platform.
func npmName(system, arch string) string {
	return "@hydrallm/" + npmNames[system] + "-" + npmNames[arch]
}

// npmPlatform writes the package of one platform: npm installs it only there.
func (r *release) npmPlatform(system, arch, binary string) error {
	manifest, err := r.npmManifest("platform", map[string]any{
		"name": npmName(system, arch), "os": []string{npmNames[system]}, "cpu": []string{npmNames[arch]},
	})
	if err != nil {
		return err
	}
	return r.npm(npmName(system, arch), []file{
		{name: "package/package.json", data: manifest, mode: 0o644},
		{name: "package/LICENSE", path: filepath.Join(r.root, "LICENSE"), mode: 0o644},
		{name: "package/bin/hydrallm" + extension(system), path: binary, mode: 0o755},
	})
}

// npmMain writes the package that is asked for by name: it depends on those of all platforms, and runs the binary of the one that npm has installed.
func (r *release) npmMain(platforms []string) error {
	binaries := map[string]string{}
	for _, p := range platforms {
		system, arch, _ := strings.Cut(p, "/")
		binaries[npmName(system, arch)] = r.version.semantic
	}
	manifest, err := r.npmManifest("hydrallm", map[string]any{"optionalDependencies": binaries})
	if err != nil {
		return err
	}
	from := filepath.Join(r.root, "deploy", "npm", "hydrallm")
	return r.npm("hydrallm", []file{
		{name: "package/package.json", data: manifest, mode: 0o644},
		{name: "package/LICENSE", path: filepath.Join(r.root, "LICENSE"), mode: 0o644},
		{name: "package/README.md", path: filepath.Join(from, "README.md"), mode: 0o644},
		{name: "package/bin/hydrallm.js", path: filepath.Join(from, "bin", "hydrallm.js"), mode: 0o755},
	})
}

// npmManifest reads a package.json of deploy/npm and gives it the version and more members.
func (r *release) npmManifest(kind string, more map[string]any) ([]byte, error) {
	text, err := fs.ReadFile(os.DirFS(r.root), "deploy/npm/"+kind+"/package.json")
	if err != nil {
		return nil, err
	}
	var members map[string]any
	if err := json.Unmarshal(text, &members); err != nil {
		return nil, err
	}
	members["version"] = r.version.semantic
	maps.Copy(members, more)
	made, err := json.MarshalIndent(members, "", "  ")
	return append(made, '\n'), err
}

// npm writes a package as `npm pack` calls it.
func (r *release) npm(name string, files []file) error {
	return r.create("npm/"+strings.ReplaceAll(strings.TrimPrefix(name, "@"), "/", "-")+"-"+r.version.semantic+".tgz", files, writeTarGz)
}
