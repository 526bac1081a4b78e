#!/usr/bin/env bash
# fuzz.sh DURATION [SECONDS]: runs each fuzz target of the workspace for the duration. With a number of seconds it stops when they are over, builds
# included, and begins with other packages every day. It goes on when an input is found that breaks a target, and fails at its end; go test keeps the input
# below testdata/fuzz.
set -euo pipefail

duration=$1 total=${2:-}
targets=()
while read -r package dir; do
	for target in $(find "$dir" -maxdepth 1 -name '*_test.go' -exec sed -n 's/^func \(Fuzz[A-Za-z0-9_]*\)(.*/\1/p' {} + | sort); do
		targets+=("$package $target")
	done
done < <(go list -f '{{.ImportPath}} {{.Dir}}' work)
count=${#targets[@]}
[ "$count" -gt 0 ] || { echo "fuzz: no targets" >&2; exit 1; }

first=0 # moves by a number that has no factor in common with most counts, so that all come first some day
[ -z "$total" ] || first=$((($(date +%s) / 86400 * 37) % count))

ran=0 broken=()
for ((i = 0; i < count; i++)); do
	read -r package target <<<"${targets[(first + i) % count]}"
	run=(go test -run '^$' -fuzz "^$target\$" -fuzztime "$duration" "$package")
	if [ -n "$total" ]; then
		left=$((total - SECONDS))
		[ "$left" -gt 0 ] || break
		run=(timeout --kill-after 10 "$left" "${run[@]}")
	fi
	printf 'fuzz %s %s: ' "$package" "$target"
	code=0
	out=$("${run[@]}" 2>&1) || code=$?
	case $code in
	0) ;;
	124 | 137) echo "the time is over"; break ;;
	*)
		# go test may fail with nothing but this when the time is over in the middle of making an input smaller (golang.org/issue/48591).
		if [[ $out != *"context deadline exceeded"* || $out == *"Failing input written"* ]]; then
			printf '\n%s\n' "$out" >&2
			broken+=("$target")
		fi
		;;
	esac
	sed -n 's/^fuzz: elapsed: \([0-9a-z]*\), execs: \([0-9]*\).*/\2 runs in \1/p' <<<"$out" | tail -n 1
	ran=$((ran + 1))
done
echo "fuzz: $ran of $count targets in $SECONDS s"
[ ${#broken[@]} -eq 0 ] || { echo "fuzz: an input breaks ${broken[*]}" >&2; exit 1; }
