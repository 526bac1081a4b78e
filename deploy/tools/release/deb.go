package main

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/goreleaser/nfpm/v2"
	"github.com/goreleaser/nfpm/v2/deb"
	"github.com/goreleaser/nfpm/v2/files"
	"github.com/klauspost/compress/gzip"
)

// deb writes the package for Debian and what comes from it: the binary, the units of deploy/systemd, and the configuration of deploy/debian, which is never written over.
func (r *release) deb(arch, binary string) error {
	changelog, err := r.compressed("docs/CHANGELOG.md")
	if err != nil {
		return err
	}
	source := func(parts ...string) string { return filepath.Join(append([]string{r.root}, parts...)...) }
	contents := files.Contents{
		packaged(binary, "/usr/bin/hydrallm", "", 0o755),
		packaged(source("deploy/debian/config.yaml"), "/etc/hydrallm/config.yaml", files.TypeConfigNoReplace, 0o644),
		packaged(source("deploy/debian/environment"), "/etc/hydrallm/environment", files.TypeConfigNoReplace, 0o600),
		packaged(source("LICENSE"), "/usr/share/doc/hydrallm/copyright", "", 0o644),
		packaged(source("README.md"), "/usr/share/doc/hydrallm/README.md", "", 0o644),
		packaged(changelog, "/usr/share/doc/hydrallm/changelog.gz", "", 0o644),
	}
	units, err := filepath.Glob(source("deploy/systemd/hydrallm.*"))
	if err != nil {
		return err
	}
	for _, unit := range units {
		contents = append(contents, packaged(unit, "/usr/lib/systemd/system/"+filepath.Base(unit), "", 0o644))
	}
	info := nfpm.WithDefaults(&nfpm.Info{
		Name: "hydrallm", Arch: arch, Platform: "linux", Version: r.version.semantic, Section: "net", Priority: "optional", MTime: epoch,
		Maintainer: "HydraLLM contributors <hydrallm@hydrallm.example>", Homepage: r.url, License: "MIT",
		Description: "gateway in front of LLM providers\nOne address for clients of OpenAI's and Anthropic's protocols, whatever the providers speak,\nwith failover, limits, keys that rest, and sessions.",
		Overridables: nfpm.Overridables{
			Contents:   contents,
			Recommends: []string{"ca-certificates"},
			Scripts: nfpm.Scripts{
				PostInstall: source("deploy/debian/postinst"), PreRemove: source("deploy/debian/prerm"), PostRemove: source("deploy/debian/postrm"),
			},
		},
	})
	if err := nfpm.PrepareForPackager(info, "deb"); err != nil {
		return err
	}
	return r.fill(deb.Default.ConventionalFileName(info), func(w io.Writer) error { return deb.Default.Package(info, w) })
}

func packaged(from, to, kind string, mode fs.FileMode) *files.Content {
	return &files.Content{Source: from, Destination: to, Type: kind, FileInfo: &files.ContentFileInfo{Owner: "root", Group: "root", Mode: mode, MTime: epoch}}
}

// compressed writes a file of the sources as gzip beside the release and gives its path.
func (r *release) compressed(name string) (string, error) {
	text, err := fs.ReadFile(os.DirFS(r.root), name)
	if err != nil {
		return "", err
	}
	var packed bytes.Buffer
	w, err := gzip.NewWriterLevel(&packed, gzip.DefaultCompression)
	if err != nil {
		return "", err
	}
	_, err = w.Write(text)
	path := filepath.Join(r.work, filepath.Base(name)+".gz")
	return path, errors.Join(err, w.Close(), os.WriteFile(path, packed.Bytes(), 0o600))
}
