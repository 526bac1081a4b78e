#!/usr/bin/env bash
# Makes what the parts of a secured cluster need to know each other, with openssl (1.1.1 or newer) and the coreutils:
#
#   identities.sh DIR [NAME...]
#
# DIR gets, unless it is there already, so that a second run only adds what is missing:
#   ca.pem ca.key        the authority of the certificates; only this script needs the key
#   nats.pem nats.key    the certificate of the NATS servers, for the names of compose and Kubernetes, localhost and each NAME more (DNS:... or IP:...)
#   SERVICE.nk           the seed of each service's nkey, and of the operator's
#   nkeys.conf           the public keys, which the NATS configuration includes
#
# The files can be read by whoever gets one, as a container does; DIR itself is closed to other users. Nothing here belongs into a repository.
# To replace an identity, remove its file, run this again, reload the servers (SIGHUP) and restart the service.
set -euo pipefail

[ $# -ge 1 ] || { sed -n '2,15s/^# \{0,1\}//p' "$0" >&2; exit 2; }
dir=$1
shift
identities=(ingress analyzer enricher dispatcher session-writer operator)
days=3650
mkdir -p "$dir"
chmod 700 "$dir"
cd "$dir"
umask 022

# nkey PREFIX... : the text form of an nkey: prefix bytes and standard input, with a CRC16 (XMODEM), in base32.
nkey() {
	local bytes crc=0 b i
	mapfile -t bytes < <(printf '%d\n' "$@"; od -An -v -tu1 -w1 | tr -d ' ')
	for b in "${bytes[@]}"; do
		crc=$((crc ^ (b << 8)))
		for i in 1 2 3 4 5 6 7 8; do
			crc=$((crc & 0x8000 ? (crc << 1 ^ 0x1021) & 0xffff : crc << 1 & 0xffff))
		done
	done
	for b in "${bytes[@]}" $((crc & 255)) $((crc >> 8)); do
		printf "\\x$(printf %02x "$b")"
	done | base32 --wrap=0 | tr -d =
}

# The prefixes of a user's nkey: 'U' is 20, the first five bits; a seed begins with 'S', 18, and the kind of its key.
make_nkey() {
	local key
	key=$(mktemp)
	openssl genpkey -algorithm ed25519 -outform DER -out "$key" 2>/dev/null
	tail -c 32 "$key" | nkey $((18 << 3 | 20 << 3 >> 5)) $(((20 << 3 & 31) << 3)) >"$1.nk"
	openssl pkey -inform DER -in "$key" -pubout -outform DER 2>/dev/null | tail -c 32 | nkey $((20 << 3)) >"$1.pub"
	rm -f "$key"
}

for name in "${identities[@]}"; do
	[ -s "$name.nk" ] && [ -s "$name.pub" ] || make_nkey "$name"
done
for name in "${identities[@]}"; do
	variable=${name//-/_}
	printf 'NKEY_%s: %s\n' "${variable^^}" "$(cat "$name.pub")"
done >nkeys.conf

if [ ! -s ca.pem ]; then
	openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -sha256 -days $days -subj "/CN=HydraLLM NATS" \
		-addext "keyUsage=critical,keyCertSign,cRLSign" -keyout ca.key -out ca.pem 2>/dev/null
	chmod 600 ca.key
	rm -f nats.pem
fi
if [ ! -s nats.pem ]; then
	names=DNS:localhost,IP:127.0.0.1,DNS:nats,DNS:nats-0,DNS:nats-1,DNS:nats-2,DNS:nats.hydrallm,DNS:nats.hydrallm.svc
	names+=,DNS:*.nats-nodes,DNS:*.nats-nodes.hydrallm.svc,DNS:*.nats-nodes.hydrallm.svc.cluster.local,DNS:nats.hydrallm.svc.cluster.local
	for name in "$@"; do
		names+=,$name
	done
	openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -sha256 -subj "/CN=nats" -keyout nats.key -out nats.csr 2>/dev/null
	openssl x509 -req -in nats.csr -CA ca.pem -CAkey ca.key -CAcreateserial -sha256 -days $days -out nats.pem -extfile <(
		printf 'subjectAltName=%s\nextendedKeyUsage=serverAuth,clientAuth\nkeyUsage=digitalSignature\n' "$names") 2>/dev/null
	rm -f nats.csr ca.srl
fi
chmod 444 ./*.nk ./*.pub ./*.pem nats.key nkeys.conf
