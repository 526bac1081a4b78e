package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
)

// services are the binaries beside the all-in-one one. They are made for Linux alone.
var services = []string{"analyzer", "dispatcher", "enricher", "ingress", "session-writer"}

// all are the platforms that a release is for, as Go names them.
var all = []string{"linux/amd64", "linux/arm64", "darwin/amd64", "darwin/arm64", "windows/amd64"}

// release is one that is being written.
type release struct {
	root    string // of the sources
	to      string // where it is written
	work    string // for what is not part of it
	version version
	url     string // where its files will be found
	sbom    string // the program that writes bills of materials
	cache   string // of what is compiled; "" is Go's own

	progress io.Writer // is told how far it is
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintf(os.Stderr, "release: %v\n", err)
		os.Exit(1) //nolint:gocritic // nothing is left to be undone
	}
}

func run(ctx context.Context, args []string, progress io.Writer) (err error) {
	flags := flag.NewFlagSet("release", flag.ContinueOnError)
	url := flags.String("url", "https://hydrallm.example/releases", "where the files of a version will be found, below its name")
	cache := flags.String("cache", "", "a directory for what is compiled, instead of Go's own")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() < 2 {
		return errors.New("a version and a directory are needed")
	}
	root, err := filepath.Abs("../../..")
	if err != nil {
		return err
	}
	to := flags.Arg(1)
	if !filepath.IsAbs(to) {
		to = filepath.Join(root, to)
	}
	platforms := flags.Args()[2:]
	if len(platforms) == 0 {
		platforms = all
	}
	r := &release{root: root, to: to, version: parseVersion(flags.Arg(0)), url: strings.TrimSuffix(*url, "/"), cache: *cache, progress: progress}
	notes, err := r.notes() // first, since it may refuse
	if err != nil {
		return err
	}
	if err := makeDir(filepath.Dir(to)); err != nil {
		return err
	}
	if err := os.Mkdir(to, 0o755); err != nil { //nolint:gosec // a release is for everybody
		return fmt.Errorf("a release is never written over another one: %w", err)
	}
	if r.work, err = os.MkdirTemp("", "release-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(r.work)) }()
	if r.sbom, err = sbomProgram(ctx); err != nil {
		return err
	}
	for _, p := range platforms {
		fmt.Fprintln(r.progress, "release:", p)
		if err := r.platform(ctx, p); err != nil {
			return fmt.Errorf("%s: %w", p, err)
		}
	}
	if err := r.npmMain(platforms); err != nil {
		return fmt.Errorf("npm: %w", err)
	}
	if err := r.chart(); err != nil {
		return fmt.Errorf("chart: %w", err)
	}
	if err := r.formula(platforms); err != nil {
		return fmt.Errorf("formula: %w", err)
	}
	if err := r.write("RELEASE_NOTES.md", notes); err != nil {
		return err
	}
	return r.sums()
}

// platform makes everything that is of one platform.
func (r *release) platform(ctx context.Context, platform string) error {
	system, arch, ok := strings.Cut(platform, "/")
	if !ok {
		return errors.New("a platform is OS/ARCH")
	}
	binaries, err := r.build(ctx, system, arch)
	if err != nil {
		return err
	}
	if err := r.archive(system, arch, binaries); err != nil {
		return err
	}
	if err := r.npmPlatform(system, arch, binaries["hydrallm"]); err != nil {
		return err
	}
	if system == "linux" {
		if err := r.deb(arch, binaries["hydrallm"]); err != nil {
			return err
		}
		if err := r.images(arch, binaries); err != nil {
			return err
		}
	}
	return r.bills(ctx, system, arch, binaries)
}

// build compiles the binaries of a platform and gives their files by their names.
func (r *release) build(ctx context.Context, system, arch string) (map[string]string, error) {
	names := []string{"hydrallm"}
	if system == "linux" {
		names = append(names, services...)
	}
	dir := filepath.Join(r.work, system+"_"+arch)
	args := []string{
		"build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w -X hydrallm/shared/process.version=" + r.version.given, "-o", dir + string(filepath.Separator),
	}
	files := make(map[string]string, len(names))
	for _, name := range names {
		args = append(args, "./services/"+name+"/cmd/"+name)
		files[name] = filepath.Join(dir, name+extension(system))
	}
	// What the environment may say of the machine must not change the code. The workspace counts, which does not for this program.
	env := append(os.Environ(), "CGO_ENABLED=0", "GOOS="+system, "GOARCH="+arch, "GOAMD64=v1", "GOARM64=v8.0", "GOWORK=", "GOEXPERIMENT=")
	if r.cache != "" {
		env = append(env, "GOCACHE="+r.cache)
	}
	return files, command(ctx, r.root, env, "go", args...)
}

// archive packs the binaries of a platform.
func (r *release) archive(system, arch string, binaries map[string]string) error {
	name := strings.Join([]string{"hydrallm", r.version.given, system, arch}, "_")
	files := []file{{name: name, mode: 0o755, dir: true}}
	for _, binary := range sorted(binaries) {
		files = append(files, file{name: name + "/" + binary + extension(system), path: binaries[binary], mode: 0o755})
	}
	for _, doc := range []string{"LICENSE", "README.md"} {
		files = append(files, file{name: name + "/" + doc, path: filepath.Join(r.root, doc), mode: 0o644})
	}
	if system == "windows" {
		return r.create(name+".zip", files, writeZip)
	}
	return r.create(name+".tar.gz", files, writeTarGz)
}

// bills writes what each binary consists of.
func (r *release) bills(ctx context.Context, system, arch string, binaries map[string]string) error {
	for _, binary := range sorted(binaries) {
		out := filepath.Join(r.to, "sbom", strings.Join([]string{"hydrallm", r.version.given, system, arch, binary}, "_")+".cdx.json")
		if err := makeDir(filepath.Dir(out)); err != nil {
			return err
		}
		if err := command(ctx, r.root, nil, r.sbom, "bin", "-json", "-std", "-noserial", "-notimestamp", "-version", r.version.given, "-output", out,
			binaries[binary]); err != nil {
			return err
		}
	}
	return nil
}

func sbomProgram(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "tool", "-n", "cyclonedx-gomod").Output()
	if err != nil {
		return "", fmt.Errorf("building cyclonedx-gomod: %w", err)
	}
	return strings.TrimSpace(string(out)), nil
}

// command runs a program, whose output counts when it fails.
func command(ctx context.Context, dir string, env []string, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...) //nolint:gosec // go, and what it has built
	cmd.Dir, cmd.Env = dir, env
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w\n%s", name, cmp.Or(args[0], "?"), err, out)
	}
	return nil
}

func extension(system string) string {
	if system == "windows" {
		return ".exe"
	}
	return ""
}

func sorted(m map[string]string) []string {
	names := make([]string, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
