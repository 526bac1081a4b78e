package movein

// Secrets gives the values that the source had in plain.
func (r *Result) Secrets() []string {
	var all []string
	for _, v := range r.vars.all {
		if v.Literal {
			all = append(all, v.value)
		}
	}
	return all
}
