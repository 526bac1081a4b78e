package config

// Settings gives the names of the environment variables for a start without a file.
func Settings() []string {
	doc := newDocument("", newFindings(""))
	names := []string{"ADMIN_API_KEY", "DEBUG", "DEFAULT_FREE_MODEL", "DEFAULT_PREMIUM_MODEL"}
	for _, s := range doc.settings() {
		names = append(names, s.name)
	}
	for _, id := range presetIDs() {
		if !presets[id].pooled {
			names = append(names, presets[id].env+"_BASE_URL")
		}
		names = append(names, presets[id].env+"_KEYS", presets[id].env+"_TIMEOUT")
	}
	return names
}
