package contract

// Priority orders requests that wait for a slot. The zero Priority is PriorityNormal.
type Priority string

// Priorities.
const (
	PriorityHigh   Priority = "high"
	PriorityNormal Priority = "normal"
	PriorityLow    Priority = "low"
)

// Known says whether p is one of the priorities.
func (p Priority) Known() bool { return p == PriorityHigh || p == PriorityNormal || p == PriorityLow }

// Named is p, with a name also when it is zero.
func (p Priority) Named() Priority {
	if p == "" {
		return PriorityNormal
	}
	return p
}

// Level is 0 for the highest priority, 1 for the next and 2 for the lowest.
func (p Priority) Level() int {
	switch p {
	case PriorityHigh:
		return 0
	case PriorityLow:
		return 2
	case PriorityNormal:
	}
	return 1
}
