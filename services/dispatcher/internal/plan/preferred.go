package plan

import "hydrallm/shared/catalog"

func preferred(models []catalog.Model, requested string) string {
	for _, m := range models {
		if m.Embedding {
			continue
		}
		if requested == "" || m.ID == requested || m.ID == requested+":latest" {
			return m.ID
		}
	}
	for _, m := range models {
		if !m.Embedding {
			return m.ID
		}
	}
	return "llama3"
}
