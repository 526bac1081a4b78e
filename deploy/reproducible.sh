#!/usr/bin/env bash
# reproducible.sh [OS/ARCH...]: makes a release of the same sources twice, in two directories, the second time with nothing that the first one built, and fails when their
# checksums differ.
set -euo pipefail
cd "$(dirname "$0")/.."

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/one/sources" "$work/another"
git ls-files -z --cached --others --exclude-standard | tar --null --files-from - --create --ignore-failed-read 2>/dev/null | tar --extract --directory "$work/one/sources"
cp -a "$work/one/sources" "$work/another/" # from the copy, since somebody may be at work on the sources
GOWORK=off go -C "$work/one/sources/deploy/tools/release" run . dev "$work/one/dist" "$@"
GOWORK=off go -C "$work/another/sources/deploy/tools/release" run . -cache "$work/cache" dev "$work/another/dist" "$@"
diff "$work/one/dist/SHA256SUMS" "$work/another/dist/SHA256SUMS"
cat "$work/one/dist/SHA256SUMS"
echo "reproducible: $(wc -l <"$work/one/dist/SHA256SUMS") files are the same in both"
