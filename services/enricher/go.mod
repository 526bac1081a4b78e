module hydrallm/services/enricher

go 1.26.0

require hydrallm/shared v0.0.0

require (
	github.com/prometheus/client_golang v1.25.0 // indirect
	github.com/stretchr/testify v1.12.1 // indirect
	go.uber.org/goleak v1.3.0 // indirect
	hydrallm/shared/testkit v0.0.0
)

replace hydrallm/shared => ../../shared

replace hydrallm/shared/testkit => ../../shared/testkit
