#!/usr/bin/env bash
# Makes sure that the base images of deploy/Dockerfile and compose.yaml are in the Docker engine.
#
# An image that is present or can be pulled is used as it is. For each other one a stand-in of the same
# name is built from Debian's packages, the Go tree of this machine and the Go module proxy, so that the
# containers can be tried without an image registry. Stand-ins carry the label hydrallm.baseimages.
#
#   images.sh          make the images available
#   images.sh remove   remove the stand-ins
set -euo pipefail
cd "$(dirname "$0")"

PULL_SECONDS=${PULL_SECONDS:-60}
DEBIAN=debian:bookworm-slim
GOLANG=golang:1.26-bookworm
NATS=nats:2-alpine
POSTGRES=postgres:15-bookworm

say() { printf 'images: %s\n' "$*" >&2; }

present() { docker image inspect "$1" >/dev/null 2>&1; }

# ensure IMAGE BUILDER: the image is there, pulled, or built by the function BUILDER.
ensure() {
	if present "$1"; then
		return
	fi
	if timeout "$PULL_SECONDS" docker pull --quiet "$1" >/dev/null 2>&1; then
		say "$1: pulled"
		return
	fi
	local started=$SECONDS
	"$2" "$1" "$work"
	say "$1: not to be pulled here, built a stand-in in $((SECONDS - started)) s"
}

# build_image IMAGE CONTEXT: builds the Dockerfile in CONTEXT with the classic builder, which knows local images.
build_image() {
	local image=$1 context=$2
	DOCKER_BUILDKIT=0 docker build --network host --label hydrallm.baseimages=1 --tag "$image" "$context" >"$context.log" 2>&1 ||
		{ tail -n 20 "$context.log" >&2; exit 1; }
}

debian() {
	local mirror
	command -v debootstrap >/dev/null || { say "debootstrap is needed to build $1; install it or give the engine access to a registry"; exit 1; }
	# The mirror that this machine's own apt uses.
	mirror=$(apt-get indextargets --format '$(REPO_URI) $(RELEASE)' 'Created-By: Packages' |
		awk '$2 == "bookworm" && $1 ~ /debian\/?$/ { print $1; exit }')
	debootstrap --variant=minbase --include=ca-certificates,netbase,tzdata bookworm "$2/root" ${mirror:+"$mirror"} >"$2/debootstrap.log" ||
		{ tail -n 20 "$2/debootstrap.log" >&2; exit 1; }
	rm -rf "$2"/root/var/cache/apt/archives/*.deb "$2"/root/var/lib/apt/lists/*
	tar -C "$2/root" -c . | docker import --change 'CMD ["bash"]' --change 'LABEL hydrallm.baseimages=1' - "$1" >/dev/null
	rm -rf "$2/root"
}

golang() {
	local context=$2/golang
	mkdir "$context"
	cp -a "$(go env GOROOT)" "$context/go"
	# The certificates that this machine trusts: it may reach the module proxy through one of its own.
	cp -L /etc/ssl/certs/ca-certificates.crt "$context/"
	cp golang.Dockerfile "$context/Dockerfile"
	build_image "$1" "$context"
}

nats() {
	local context=$2/nats version
	mkdir "$context"
	version=$(go -C ../../shared/testkit list -m -f '{{.Version}}' github.com/nats-io/nats-server/v2)
	CGO_ENABLED=0 GOBIN=$context GOWORK=off GOFLAGS=-buildvcs=false go install -trimpath "github.com/nats-io/nats-server/v2@$version"
	cp nats.Dockerfile "$context/Dockerfile"
	build_image "$1" "$context"
}

postgres() {
	local context=$2/postgres
	mkdir "$context"
	cp postgres-entrypoint.sh "$context/"
	cp postgres.Dockerfile "$context/Dockerfile"
	build_image "$1" "$context"
}

remove() {
	local ids
	ids=$(docker image ls --quiet --filter label=hydrallm.baseimages | sort -u)
	[ -z "$ids" ] || docker image rm --force $ids >/dev/null
}

if [ "${1:-}" = remove ]; then
	remove
	exit
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
ensure "$DEBIAN" debian
ensure "$GOLANG" golang
ensure "$NATS" nats
ensure "$POSTGRES" postgres
