#!/usr/bin/env bash
# Runs the end-to-end tests: real clients, which npm and pip install once, the web interface before axe, workers that are killed under
# load, the compose set on the Docker engine of this machine, and each way to install that builds nothing. What is not there
# is skipped, or fails when HYDRALLM_REQUIRE_SERVICES=1.
set -euo pipefail
cd "$(dirname "$0")/../../.."

go test -tags e2e -count 1 -v -timeout 30m ./services/hydrallm/e2e/clients
go test -tags e2e -count 1 -v -timeout 30m -run '^TestAxe' ./services/hydrallm/e2e/webui
go test -tags e2e -count 1 -v -timeout 15m -run '^TestChaosProcesses$' -short ./services/hydrallm/e2e/chaos

if ! docker info >/dev/null 2>&1; then
	if [ "${HYDRALLM_REQUIRE_SERVICES:-}" = 1 ]; then
		echo "e2e: no Docker engine answers, and it is required" >&2
		exit 1
	fi
	echo "e2e: skipped, no Docker engine answers"
	exit 0
fi
started=$SECONDS
deploy/baseimages/images.sh
echo "e2e: base images ready after $((SECONDS - started)) s"
go test -tags e2e -count 1 -v -timeout 60m -run '^TestCompose$' ./services/hydrallm/e2e
go test -tags e2e -count 1 -v -timeout 30m -short ./services/hydrallm/e2e/install
echo "e2e: done after $((SECONDS - started)) s"
