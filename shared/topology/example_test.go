package topology_test

import (
	"fmt"

	"hydrallm/shared/topology"
)

// What an operator chooses decides how the streams are kept.
func ExampleConfig_Streams() {
	for _, s := range (topology.Config{Replicas: 3}).Streams() {
		fmt.Println(s.Name, s.Storage, s.Replicas)
	}
	// Output:
	// HYDRA_WORK Memory 3
	// HYDRA_BACKGROUND File 3
	// HYDRA_RESPONSES File 3
	// HYDRA_FACTS File 3
	// HYDRA_DEAD File 3
}
