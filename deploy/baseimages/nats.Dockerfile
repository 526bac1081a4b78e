# Stand-in for nats:2-alpine: the server built from its module; wget is there for health checks.
FROM debian:bookworm-slim
RUN apt-get update && apt-get install --yes --no-install-recommends busybox-static \
	&& ln -s /bin/busybox /usr/local/bin/wget && rm -rf /var/lib/apt/lists/*
COPY nats-server /usr/local/bin/nats-server
EXPOSE 4222 8222 6222
ENTRYPOINT ["nats-server"]
