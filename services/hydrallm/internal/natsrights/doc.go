// Package natsrights says what each service may publish and subscribe to at a secured NATS server: what it uses, and nothing else. The names come from
// shared/subject and shared/topology. deploy/nats/permissions.conf is made from it ("go test ./services/hydrallm/internal/natsrights -update"), and the tests run the
// pipeline with that file.
package natsrights
