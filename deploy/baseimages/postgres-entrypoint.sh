#!/usr/bin/env bash
# Makes the database that POSTGRES_USER, POSTGRES_PASSWORD and POSTGRES_DB name on an empty PGDATA, then runs the command.
set -euo pipefail
umask 077

user=${POSTGRES_USER:-postgres}
database=${POSTGRES_DB:-$user}

if [ ! -s "$PGDATA/PG_VERSION" ]; then
	: "${POSTGRES_PASSWORD:?is needed for a new database}"
	chmod 700 "$PGDATA"
	initdb --username="$user" --pwfile=<(printf '%s\n' "$POSTGRES_PASSWORD") --auth-host=scram-sha-256 --auth-local=trust --encoding=UTF8 --locale=C.UTF-8
	printf 'host all all all scram-sha-256\n' >>"$PGDATA/pg_hba.conf"
	sed -i "s/^#*listen_addresses.*/listen_addresses = '*'/" "$PGDATA/postgresql.conf"
	if [ "$database" != postgres ]; then
		# In single-user mode: nobody can connect before the database exists.
		printf 'CREATE DATABASE "%s";\n' "$database" | postgres --single -j -D "$PGDATA" postgres >/dev/null
	fi
fi
exec "$@"
