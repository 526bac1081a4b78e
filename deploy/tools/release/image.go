package main

import (
	"bytes"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// imageUser runs in the images, and owns their data. It is the one of deploy/Dockerfile and of the manifests of Kubernetes.
const imageUser = 10001

// images writes two archives for `docker load`: the all-in-one image, and those of the services.
func (r *release) images(arch string, binaries map[string]string) error {
	for name, group := range map[string][]string{"hydrallm": {"hydrallm"}, "hydrallm-services": services} {
		var made []image
		for _, service := range group {
			img, err := r.image(arch, service, binaries[service])
			if err != nil {
				return fmt.Errorf("image of %s: %w", service, err)
			}
			made = append(made, img)
		}
		err := r.fill(strings.Join([]string{name, r.version.given, "linux", arch, "image.tar"}, "_"), func(w io.Writer) error { return writeImages(w, made) })
		if err != nil {
			return err
		}
	}
	return nil
}

// image is one with the names that it gets where it is loaded.
type image struct {
	v1.Image
	names []string
}

// image makes the image of a service: the same as deploy/Dockerfile makes, without an engine.
func (r *release) image(arch, service, binary string) (image, error) {
	certificates := certificates()
	base, err := layer([]file{
		{name: "data", dir: true, mode: 0o755, user: imageUser},
		{name: "etc", dir: true, mode: 0o755},
		{name: "etc/ssl", dir: true, mode: 0o755},
		{name: "etc/ssl/certs", dir: true, mode: 0o755},
		{name: "etc/ssl/certs/ca-certificates.crt", data: certificates, mode: 0o644},
		{name: "tmp", dir: true, mode: 0o1777},
	})
	if err != nil {
		return image{}, err
	}
	program, err := layer([]file{
		{name: "usr", dir: true, mode: 0o755},
		{name: "usr/local", dir: true, mode: 0o755},
		{name: "usr/local/bin", dir: true, mode: 0o755},
		{name: "usr/local/bin/service", path: binary, mode: 0o755},
	})
	if err != nil {
		return image{}, err
	}
	img, err := mutate.Append(mutate.MediaType(mutate.ConfigMediaType(empty.Image, types.OCIConfigJSON), types.OCIManifestSchema1),
		mutate.Addendum{Layer: base, History: v1.History{Created: v1.Time{Time: epoch}, CreatedBy: "certificates, /data and /tmp"}},
		mutate.Addendum{Layer: program, History: v1.History{Created: v1.Time{Time: epoch}, CreatedBy: service}},
	)
	if err != nil {
		return image{}, err
	}
	config, err := img.ConfigFile()
	if err != nil {
		return image{}, err
	}
	config = config.DeepCopy()
	config.Architecture, config.OS, config.Created = arch, "linux", v1.Time{Time: epoch}
	user := strconv.Itoa(imageUser)
	config.Config = v1.Config{
		User:       user + ":" + user,
		Env:        []string{"PATH=/usr/local/bin", "DATA_DIR=/data"},
		Entrypoint: []string{"/usr/local/bin/service"},
		WorkingDir: "/data",
		Labels: map[string]string{
			"org.opencontainers.image.title":    service,
			"org.opencontainers.image.version":  r.version.given,
			"org.opencontainers.image.licenses": "MIT",
			"org.opencontainers.image.description": map[bool]string{
				true: "HydraLLM, a gateway in front of LLM providers", false: "The service " + service + " of HydraLLM",
			}[service == "hydrallm"],
		},
		ExposedPorts: map[string]struct{}{"9090/tcp": {}}, // HEALTH_ADDR
	}
	switch service {
	case "hydrallm":
		config.Config.ExposedPorts = map[string]struct{}{"8000/tcp": {}, "8100/tcp": {}} // without and with a configuration file
		config.Config.Volumes = map[string]struct{}{"/data": {}}
		// Not a part of OCI's format, but Docker reads it.
		config.Config.Healthcheck = &v1.HealthConfig{
			Test: []string{"CMD", "service", "healthcheck"}, Interval: 10 * time.Second, Timeout: 5 * time.Second, StartPeriod: 10 * time.Second, Retries: 3,
		}
	case "ingress":
		config.Config.ExposedPorts["8100/tcp"] = struct{}{}
	}
	made, err := mutate.ConfigFile(img, config)
	tag := strings.TrimLeft(unusualInTag.Replace(r.version.given), ".-")
	names := []string{"hydrallm/" + service + ":" + tag}
	if !r.version.snapshot {
		names = append(names, "hydrallm/"+service+":latest")
	}
	return image{made, names}, err
}

var unusualInTag = strings.NewReplacer("+", "-", "/", "-", "~", "-")

func layer(files []file) (v1.Layer, error) {
	return tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		from, to := io.Pipe()
		go func() { to.CloseWithError(writeTar(to, files)) }() // it ends when the reader closes
		return from, nil
	}, tarball.WithMediaType(types.OCILayer), tarball.WithCompressedCaching)
}

// certificates gives those that Mozilla trusts without conditions, which a file of PEM blocks could not say.
func certificates() []byte {
	var text bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			_ = pem.Encode(&text, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}) // a buffer takes everything
		}
	}
	return text.Bytes()
}

// writeImages writes an archive that is both: an image layout of OCI, and, with manifest.json, what every version of `docker load` takes.
func writeImages(w io.Writer, images []image) error {
	type dockerImage struct {
		Config   string
		RepoTags []string
		Layers   []string
	}
	blobs := map[string][]byte{}
	var docker []dockerImage
	index := v1.IndexManifest{SchemaVersion: 2, MediaType: types.OCIImageIndex}
	for _, img := range images {
		digest, err := img.Digest()
		if err != nil {
			return err
		}
		manifest, err := img.RawManifest()
		if err != nil {
			return err
		}
		blobs[blob(digest)] = manifest
		configDigest, err := img.ConfigName()
		if err != nil {
			return err
		}
		if blobs[blob(configDigest)], err = img.RawConfigFile(); err != nil {
			return err
		}
		entry := dockerImage{Config: blob(configDigest), RepoTags: img.names}
		layers, err := img.Layers()
		if err != nil {
			return err
		}
		for _, l := range layers {
			digest, err := l.Digest()
			if err != nil {
				return err
			}
			if blobs[blob(digest)], err = content(l); err != nil {
				return err
			}
			entry.Layers = append(entry.Layers, blob(digest))
		}
		docker = append(docker, entry)
		config, err := img.ConfigFile()
		if err != nil {
			return err
		}
		for _, name := range img.names {
			index.Manifests = append(index.Manifests, v1.Descriptor{
				MediaType: types.OCIManifestSchema1, Size: int64(len(manifest)), Digest: digest, Platform: &v1.Platform{OS: config.OS, Architecture: config.Architecture},
				Annotations: map[string]string{"io.containerd.image.name": "docker.io/" + name, "org.opencontainers.image.ref.name": name[strings.LastIndexByte(name, ':')+1:]},
			})
		}
	}
	files := []file{{name: "blobs", dir: true, mode: 0o755}, {name: "blobs/sha256", dir: true, mode: 0o755}, {name: "oci-layout", data: []byte(`{"imageLayoutVersion":"1.0.0"}`), mode: 0o644}}
	for name, value := range map[string]any{"index.json": index, "manifest.json": docker} {
		text, err := json.Marshal(value)
		if err != nil {
			return err
		}
		files = append(files, file{name: name, data: text, mode: 0o644})
	}
	for name, data := range blobs {
		files = append(files, file{name: name, data: data, mode: 0o644})
	}
	slices.SortFunc(files, func(a, b file) int { return strings.Compare(a.name, b.name) })
	return writeTar(w, files)
}

func blob(digest v1.Hash) string { return "blobs/" + digest.Algorithm + "/" + digest.Hex }

func content(l v1.Layer) ([]byte, error) {
	from, err := l.Compressed()
	if err != nil {
		return nil, err
	}
	defer from.Close() //nolint:errcheck // it was read
	return io.ReadAll(from)
}
