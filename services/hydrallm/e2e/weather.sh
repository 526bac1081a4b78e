#!/usr/bin/env bash
# Runs the suites of the services, and those of the whole gateway in one process, on a bus whose messages are late, out of order, repeated and now and then lost, on a machine
# that has three times as much to do as it has cores. BUS_WEATHER is the seed.
set -euo pipefail
cd "$(dirname "$0")/../../.."
export BUS_WEATHER="${BUS_WEATHER:-$RANDOM}"
echo "weather: BUS_WEATHER=$BUS_WEATHER"

busy=()
trap 'kill "${busy[@]}" 2>/dev/null || true' EXIT
for _ in $(seq $((3 * $(nproc)))); do
	(while :; do :; done) &
	busy+=($!)
done
go test -count 1 -timeout 60m ./services/analyzer ./services/enricher ./services/session-writer ./services/dispatcher ./services/ingress
go test -count 1 -timeout 60m -run 'TestBadWeather|TestRepeatedMessages|TestLateWorkers|TestLostCancellations' ./services/hydrallm/internal/gateway
