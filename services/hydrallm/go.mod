module hydrallm/services/hydrallm

go 1.26.0

require hydrallm/shared v0.0.0

require (
	github.com/alecthomas/kong v1.17.0 // indirect
	github.com/antithesishq/antithesis-sdk-go v0.9.0-default-no-op // indirect
	github.com/coder/websocket v1.8.15 // indirect
	github.com/gofrs/flock v0.13.2 // indirect
	github.com/google/go-tpm v0.9.8 // indirect
	github.com/klauspost/compress v1.20.4 // indirect
	github.com/minio/highwayhash v1.0.4 // indirect
	github.com/nats-io/jwt/v2 v2.8.3 // indirect
	github.com/nats-io/nats-server/v2 v2.15.3 // indirect
	github.com/nats-io/nkeys v0.4.17 // indirect
	github.com/nats-io/nuid v1.0.1 // indirect
	github.com/openai/openai-go/v3 v3.99.0 // indirect
	github.com/stretchr/testify v1.12.1 // indirect
	github.com/tidwall/gjson v1.20.3 // indirect
	github.com/tidwall/match v1.1.1 // indirect
	github.com/tidwall/pretty v1.3.0 // indirect
	github.com/tidwall/sjson v1.2.9 // indirect
	go.uber.org/goleak v1.3.0 // indirect
	golang.org/x/crypto v0.58.0 // indirect
	golang.org/x/sys v0.50.0 // indirect
	golang.org/x/time v0.16.0 // indirect
	hydrallm/services/analyzer v0.0.0
	hydrallm/services/dispatcher v0.0.0
	hydrallm/services/enricher v0.0.0
	hydrallm/services/ingress v0.0.0
	hydrallm/services/session-writer v0.0.0
	hydrallm/shared/testkit v0.0.0
)

replace hydrallm/shared => ../../shared

replace hydrallm/shared/testkit => ../../shared/testkit

replace hydrallm/services/analyzer => ../analyzer

replace hydrallm/services/dispatcher => ../dispatcher

replace hydrallm/services/enricher => ../enricher

replace hydrallm/services/ingress => ../ingress

replace hydrallm/services/session-writer => ../session-writer
