package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

// what npm, Helm and Debian call a version, and which one is a release.
func TestVersions(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]version{
		"1.2.3":                   {"1.2.3", "1.2.3", false},
		"v1.2.3":                  {"v1.2.3", "1.2.3", false},
		"v1.2.3-rc.1":             {"v1.2.3-rc.1", "1.2.3-rc.1", false},
		"v1.2.3-4-gabcdef0":       {"v1.2.3-4-gabcdef0", "1.2.3-4-gabcdef0", true},
		"v1.2.3-4-gabcdef0-dirty": {"v1.2.3-4-gabcdef0-dirty", "1.2.3-4-gabcdef0-dirty", true},
		"v1.2.3-dirty":            {"v1.2.3-dirty", "1.2.3-dirty", true},
		"50282f7":                 {"50282f7", "0.0.0-snapshot.g50282f7", true},
		"0123456":                 {"0123456", "0.0.0-snapshot.g0123456", true},
		"50282f7-dirty":           {"50282f7-dirty", "0.0.0-snapshot.g50282f7-dirty", true},
		"dev":                     {"dev", "0.0.0-snapshot.gdev", true},
		"01.2.3":                  {"01.2.3", "0.0.0-snapshot.g01-2-3", true},
		"a/b+c":                   {"a/b+c", "0.0.0-snapshot.ga-b-c", true},
	} {
		if got := parseVersion(given); got != want {
			t.Errorf("%s: %+v, not %+v", given, got, want)
		}
	}
}

// a release has the notes that the changelog has for it, and without any there is no release.
func TestNotes(t *testing.T) {
	t.Parallel()
	const log = "# Changelog\n\n## Unreleased\n\n- new: [a page](page.md#part), [another](https://page.example)\n\n## [1.1.0] - 2026-12-01\n\n### Added\n\n- that\n\n## 1.0.0\n\n- this\n\n## 0.9.0\n"
	for given, want := range map[string]string{
		"v1.1.0":            "# HydraLLM v1.1.0\n\n### Added\n\n- that\n",
		"1.0.0":             "# HydraLLM 1.0.0\n\n- this\n",
		"v1.1.0-2-gabcdef0": "# HydraLLM v1.1.0-2-gabcdef0\n\n- new: a page, [another](https://page.example)\n",
		"dev":               "# HydraLLM dev\n\n- new: a page, [another](https://page.example)\n",
	} {
		got, err := cut(log, parseVersion(given))
		if err != nil || string(got) != want {
			t.Errorf("%s: %q, %v", given, got, err)
		}
	}
	for _, given := range []string{"0.9.0", "1.2.0", "1.1.0-rc.1", "110.0.0"} {
		if got, err := cut(log, parseVersion(given)); err == nil {
			t.Errorf("%s: %q", given, got)
		}
	}
	if _, err := cut("# Changelog\n", parseVersion("dev")); err == nil {
		t.Error("a snapshot without news")
	}
}

func here(t *testing.T) *release {
	t.Helper()
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	return &release{root: root, to: t.TempDir(), work: t.TempDir(), version: parseVersion("dev"), url: "https://hydrallm.example", progress: io.Discard}
}

// program gives the path of a program of the machine. Without it the test is skipped, or fails if HYDRALLM_REQUIRE_SERVICES=1.
func program(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil && os.Getenv("HYDRALLM_REQUIRE_SERVICES") == "1" {
		t.Fatal(err)
	}
	if err != nil {
		t.Skipf("this machine has no %s, and HYDRALLM_REQUIRE_SERVICES=1 does not ask for it", name)
	}
	return path
}

// binary is a file that stands for a binary.
func binary(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

func (r *release) read(t *testing.T, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(r.to, name))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// untar gives the headers and the content of an archive.
func untar(t *testing.T, from io.Reader) (map[string]*tar.Header, map[string]string) {
	t.Helper()
	headers, texts := map[string]*tar.Header{}, map[string]string{}
	for r := tar.NewReader(from); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return headers, texts
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		headers[h.Name], texts[h.Name] = h, string(text)
	}
}

func ungzip(t *testing.T, data []byte) io.Reader {
	t.Helper()
	r, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// archives hold the binary that can be run, for Windows as a ZIP file, and nothing of who made them.
func TestArchives(t *testing.T) {
	t.Parallel()
	r := here(t)
	binaries := map[string]string{"hydrallm": binary(t, "program")}
	for _, system := range []string{"linux", "windows"} {
		if err := r.archive(system, "amd64", binaries); err != nil {
			t.Fatal(err)
		}
	}
	headers, texts := untar(t, ungzip(t, r.read(t, "hydrallm_dev_linux_amd64.tar.gz")))
	h := headers["hydrallm_dev_linux_amd64/hydrallm"]
	if h == nil || h.Mode != 0o755 || !h.ModTime.Equal(epoch) || h.Uname != "" || texts[h.Name] != "program" {
		t.Errorf("%+v", h)
	}
	if len(headers) != 4 || !strings.Contains(texts["hydrallm_dev_linux_amd64/LICENSE"], "MIT") {
		t.Errorf("%v", headers)
	}
	z, err := zip.OpenReader(filepath.Join(r.to, "hydrallm_dev_windows_amd64.zip"))
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close() //nolint:errcheck // it is only read
	if f := z.File[0]; f.Name != "hydrallm_dev_windows_amd64/hydrallm.exe" || f.Mode()&0o111 == 0 || !f.Modified.Equal(epoch) {
		t.Errorf("%+v", f.FileHeader)
	}
}

// the images are valid, for the processor that they say, and hold the binary, certificates, /tmp and the data of a user without rights.
func TestImages(t *testing.T) {
	t.Parallel()
	r := here(t)
	binaries := map[string]string{"hydrallm": binary(t, "all")}
	for _, s := range services {
		binaries[s] = binary(t, s)
	}
	if err := r.images("arm64", binaries); err != nil {
		t.Fatal(err)
	}
	for archive, names := range map[string][]string{"hydrallm": {"hydrallm"}, "hydrallm-services": services} {
		path := filepath.Join(r.to, archive+"_dev_linux_arm64_image.tar")
		for _, service := range names {
			tag, err := name.NewTag("hydrallm/" + service + ":dev")
			if err != nil {
				t.Fatal(err)
			}
			img, err := tarball.ImageFromPath(path, &tag)
			if err != nil {
				t.Fatal(err)
			}
			checkImage(t, img, binaries[service])
		}
		opened, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer opened.Close() //nolint:errcheck // it is only read
		_, texts := untar(t, opened)
		var index v1.IndexManifest
		if err := json.Unmarshal([]byte(texts["index.json"]), &index); err != nil || len(index.Manifests) != len(names) {
			t.Fatalf("%v: %s", err, texts["index.json"])
		}
		for _, m := range index.Manifests {
			if manifest := texts[blob(m.Digest)]; int64(len(manifest)) != m.Size {
				t.Errorf("%s: %d bytes", m.Digest, len(manifest))
			}
		}
	}
}

func checkImage(t *testing.T, img v1.Image, binary string) {
	t.Helper()
	if err := validate.Image(img); err != nil {
		t.Error(err)
	}
	config, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if config.Architecture != "arm64" || config.OS != "linux" || config.Config.User != "10001:10001" || !config.Created.Equal(epoch) || len(config.Config.ExposedPorts) == 0 {
		t.Errorf("%+v", config)
	}
	layers, err := img.Layers()
	if err != nil {
		t.Fatal(err)
	}
	headers, texts := map[string]*tar.Header{}, map[string]string{}
	for _, l := range layers {
		from, err := l.Uncompressed()
		if err != nil {
			t.Fatal(err)
		}
		h, x := untar(t, from)
		for k := range h {
			headers[k], texts[k] = h[k], x[k]
		}
	}
	want, err := os.ReadFile(binary)
	if err != nil {
		t.Fatal(err)
	}
	if program := config.Config.Entrypoint[0]; texts[strings.TrimPrefix(program, "/")] != string(want) || headers[program[1:]].Mode != 0o755 {
		t.Errorf("%s: %q", program, texts[program[1:]])
	}
	if h := headers["data/"]; h.Uid != imageUser || h.Gid != imageUser {
		t.Errorf("%+v", h)
	}
	if h := headers["tmp/"]; h.Mode != 0o1777 {
		t.Errorf("%+v", h)
	}
	if n := strings.Count(texts["etc/ssl/certs/ca-certificates.crt"], "BEGIN CERTIFICATE"); n < 80 {
		t.Errorf("%d certificates", n)
	}
	if block, _ := pem.Decode(certificates()); block == nil {
		t.Error("no certificates")
	}
}

// Debian's package has the binary, the unit, and a configuration that stays when it is changed; keys are for root alone.
func TestDeb(t *testing.T) {
	t.Parallel()
	r := here(t)
	if err := r.deb("amd64", binary(t, "program")); err != nil {
		t.Fatal(err)
	}
	tool := program(t, "dpkg-deb")
	packages, err := filepath.Glob(filepath.Join(r.to, "hydrallm_*_amd64.deb"))
	if err != nil || len(packages) != 1 {
		t.Fatal(packages, err)
	}
	dpkg := func(args ...string) string {
		out, err := exec.CommandContext(t.Context(), tool, args...).CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return string(out)
	}
	listing := dpkg("--contents", packages[0])
	for _, line := range []string{
		"-rwxr-xr-x root/root         7 1980-01-01 00:00 ./usr/bin/hydrallm\n", " ./usr/lib/systemd/system/hydrallm.service\n", " ./etc/hydrallm/config.yaml\n",
		"-rw------- root/root", " ./usr/share/doc/hydrallm/changelog.gz\n",
	} {
		if !strings.Contains(listing, line) {
			t.Errorf("no %q in\n%s", line, listing)
		}
	}
	control := t.TempDir()
	dpkg("--control", packages[0], control)
	conffiles, err := os.ReadFile(filepath.Join(control, "conffiles"))
	if err != nil || string(conffiles) != "/etc/hydrallm/config.yaml\n/etc/hydrallm/environment\n" {
		t.Errorf("%v: %s", err, conffiles)
	}
	for _, script := range []string{"postinst", "prerm", "postrm"} {
		if out, err := exec.CommandContext(t.Context(), "sh", "-n", filepath.Join(control, script)).CombinedOutput(); err != nil {
			t.Errorf("%s: %s", script, out)
		}
	}
}

// systemd finds nothing wrong with the units, and little that the service may do.
func TestUnits(t *testing.T) {
	t.Parallel()
	tool := program(t, "systemd-analyze")
	units, err := filepath.Glob("../../systemd/hydrallm.*")
	if err != nil || len(units) == 0 {
		t.Fatal(units, err)
	}
	dir := t.TempDir()
	var copies []string
	for _, unit := range units {
		text, err := os.ReadFile(unit)
		if err != nil {
			t.Fatal(err)
		}
		// The program has to be there.
		path := filepath.Join(dir, filepath.Base(unit))
		if err := os.WriteFile(path, bytes.ReplaceAll(text, []byte("/usr/bin/hydrallm"), []byte("/bin/true")), 0o644); err != nil {
			t.Fatal(err)
		}
		copies = append(copies, path)
	}
	if out, err := exec.CommandContext(t.Context(), tool, append([]string{"verify"}, copies...)...).CombinedOutput(); err != nil || strings.Contains(string(out), "hydrallm") {
		t.Errorf("%v: %s", err, out)
	}
	// Of 100, which is a service that is confined in no way.
	if out, err := exec.CommandContext(t.Context(), tool, "security", "--offline=true", "--threshold=15", filepath.Join(dir, "hydrallm.service")).CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

// npm's packages hold the binary of one platform each, and one that depends on them in exactly its own version.
func TestNPM(t *testing.T) {
	t.Parallel()
	r := here(t)
	if err := r.npmPlatform("windows", "amd64", binary(t, "program")); err != nil {
		t.Fatal(err)
	}
	if err := r.npmMain([]string{"windows/amd64", "darwin/arm64"}); err != nil {
		t.Fatal(err)
	}
	headers, texts := untar(t, ungzip(t, r.read(t, "npm/hydrallm-win32-x64-0.0.0-snapshot.gdev.tgz")))
	if h := headers["package/bin/hydrallm.exe"]; h == nil || h.Mode != 0o755 {
		t.Errorf("%+v", h)
	}
	var manifest struct {
		Name, Version string
		OS, CPU       []string
		Bin, Scripts  map[string]string
		Optional      map[string]string `json:"optionalDependencies"`
	}
	if err := json.Unmarshal([]byte(texts["package/package.json"]), &manifest); err != nil {
		t.Fatal(err)
	}
	if manifest.Name != "@hydrallm/win32-x64" || manifest.OS[0] != "win32" || manifest.CPU[0] != "x64" {
		t.Errorf("%+v", manifest)
	}
	headers, texts = untar(t, ungzip(t, r.read(t, "npm/hydrallm-0.0.0-snapshot.gdev.tgz")))
	if err := json.Unmarshal([]byte(texts["package/package.json"]), &manifest); err != nil {
		t.Fatal(err)
	}
	if len(manifest.Optional) != 2 || manifest.Optional["@hydrallm/darwin-arm64"] != "0.0.0-snapshot.gdev" || manifest.Scripts != nil || headers["package/"+manifest.Bin["hydrallm"]] == nil {
		t.Errorf("%+v", manifest)
	}
}

// Homebrew finds the archive for each machine at its address, with its sum, installs what is in it, and can run it.
func TestFormula(t *testing.T) {
	t.Parallel()
	ruby := program(t, "ruby")
	r := here(t)
	platforms := []string{"linux/amd64", "linux/arm64", "darwin/arm64", "windows/amd64"}
	for _, p := range platforms {
		system, arch, _ := strings.Cut(p, "/")
		if err := r.archive(system, arch, map[string]string{"hydrallm": binary(t, "#!/bin/sh\n[ \"$1\" = version ] && echo dev # "+p)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.formula(platforms); err != nil {
		t.Fatal(err)
	}
	for _, p := range platforms {
		system, arch, _ := strings.Cut(p, "/")
		if system == "windows" {
			continue
		}
		to := t.TempDir()
		out, err := exec.CommandContext(t.Context(), ruby, "testdata/brew.rb", filepath.Join(r.to, "homebrew", "hydrallm.rb"), system, arch, r.to, to).CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", p, err, out)
		}
		var found struct {
			URL, Version string
			Installed    []string
			Run          []string
		}
		if err := json.Unmarshal(out, &found); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		if found.URL != "https://hydrallm.example/dev/hydrallm_dev_"+system+"_"+arch+".tar.gz" || found.Version != "0.0.0-snapshot.gdev" {
			t.Errorf("%s: %+v", p, found)
		}
		if !slices.Equal(found.Installed, []string{"bin", "bin/hydrallm", "var", "var/hydrallm"}) || !slices.Equal(found.Run, []string{to + "/bin/hydrallm", "serve"}) {
			t.Errorf("%s: %+v", p, found)
		}
		if text, err := os.ReadFile(to + "/bin/hydrallm"); err != nil || !strings.Contains(string(text), p) {
			t.Errorf("%s: %v: %s", p, err, text)
		}
	}
}

// the checksums are those of the files, as sha256sum reads them.
func TestSums(t *testing.T) {
	t.Parallel()
	r := here(t)
	if err := errors.Join(r.write("b", []byte("b")), r.write("a/a", []byte("a")), r.sums()); err != nil {
		t.Fatal(err)
	}
	const want = "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb  a/a\n3e23e8160039594a33894f6564e1b1348bbd7a0088d42c4acb73eeaed59c009d  b\n"
	if got := string(r.read(t, "SHA256SUMS")); got != want {
		t.Error(got)
	}
}

// the chart has the version.
func TestChart(t *testing.T) {
	t.Parallel()
	r := here(t)
	if err := r.chart(); err != nil {
		t.Fatal(err)
	}
	headers, texts := untar(t, ungzip(t, r.read(t, "helm/hydrallm-0.0.0-snapshot.gdev.tgz")))
	if chart := texts["hydrallm/Chart.yaml"]; !strings.Contains(chart, "\nversion: 0.0.0-snapshot.gdev\n") || !strings.Contains(chart, "\nappVersion: \"dev\"\n") {
		t.Error(chart)
	}
	if h := headers["hydrallm/files/permissions.conf"]; h == nil || h.Typeflag != tar.TypeReg || fs.FileMode(h.Mode) != 0o644 {
		t.Errorf("%+v", h)
	}
}
