package firstconfig

// Usable gives a name as a list, if it can be written into a configuration.
func Usable(model string) []string {
	if !usable(model) {
		return nil
	}
	return []string{model}
}
