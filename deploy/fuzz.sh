#!/usr/bin/env bash
# fuzz.sh DURATION: runs each fuzz target of the workspace for the duration.
set -euo pipefail

found=0
while read -r package dir; do
	for target in $(find "$dir" -maxdepth 1 -name '*_test.go' -exec sed -n 's/^func \(Fuzz[A-Za-z0-9_]*\)(.*/\1/p' {} +); do
		found=$((found + 1))
		printf 'fuzz %s %s\n' "$package" "$target"
		go test -run '^$' -fuzz "^$target\$" -fuzztime "$1" "$package"
	done
done < <(go list -f '{{.ImportPath}} {{.Dir}}' work)
echo "fuzz: $found targets"
