#!/bin/bash
# healthcheck PORT [PATH]: succeeds when the HTTP server of this container answers 200. bash speaks TCP itself, so the image needs no client.
set -u
port=$1 path=${2:-/readyz}

exec 3<>"/dev/tcp/127.0.0.1/$port" || exit 1
printf 'GET %s HTTP/1.0\r\nHost: localhost\r\n\r\n' "$path" >&3
read -r -t 2 _ status _ <&3
[ "$status" = 200 ]
