#!/usr/bin/env bash
# release.sh VERSION DIRECTORY [PLATFORM...]: writes what a release consists of into the directory, which must not exist: for each platform
# (OS/ARCH, linux/amd64 and linux/arm64 by default) an archive of all binaries, beside it the bill of materials of each binary (CycloneDX), and
# SHA256SUMS over all of it. The same sources, version and Go give the same bytes, wherever they are built.
set -euo pipefail
cd "$(dirname "$0")/.."

version=$1 to=$2
shift 2
platforms=("$@")
[ $# -gt 0 ] || platforms=(linux/amd64 linux/arm64)
commands=()
for service in analyzer dispatcher enricher hydrallm ingress session-writer; do
	commands+=("./services/$service/cmd/$service")
done

mkdir -p "$(dirname "$to")"
mkdir "$to"
to=$(cd "$to" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
sbom=$(GOWORK=off go -C deploy/tools/release tool -n cyclonedx-gomod)

for platform in "${platforms[@]}"; do
	name=hydrallm_${version}_${platform//\//_}
	mkdir "$work/$name"
	CGO_ENABLED=0 GOOS=${platform%/*} GOARCH=${platform#*/} go build -trimpath -buildvcs=false \
		-ldflags "-s -w -X hydrallm/shared/process.version=$version" -o "$work/$name/" "${commands[@]}"
	for binary in "$work/$name"/*; do
		"$sbom" bin -json -std -noserial -notimestamp -version "$version" -output "$to/${name}_$(basename "$binary").cdx.json" "$binary" 2>"$work/sbom.log" ||
			{ cat "$work/sbom.log" >&2; exit 1; }
	done
	cp LICENSE README.md "$work/$name/"
	tar --directory "$work" --sort=name --owner=0 --group=0 --numeric-owner --mtime=@0 --format=ustar --create "$name" | gzip --no-name --best >"$to/$name.tar.gz"
done
(cd "$to" && sha256sum -- *.tar.gz *.cdx.json >SHA256SUMS)
echo "release: $(ls "$to" | wc -l) files in $to"
