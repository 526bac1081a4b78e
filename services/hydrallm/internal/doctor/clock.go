package doctor

import (
	"fmt"
	"slices"
	"time"

	"hydrallm/services/dispatcher"
	"hydrallm/services/hydrallm/internal/phrase"
)

// skewLimit is by how much the clock may differ from those of providers. Signatures and keys that expire allow for some minutes at most.
const skewLimit = 30 * time.Second

// clock compares the clock of this machine with those of the providers.
func clock(examined []dispatcher.Examined) Row {
	type difference struct {
		provider string
		ahead    time.Duration
	}
	var all []difference
	for _, e := range examined {
		if len(e.Clocks) > 0 {
			all = append(all, difference{e.Provider, median(e.Clocks)})
		}
	}
	row := Row{Check: "clock", State: OK}
	if len(all) == 0 {
		row.State, row.Found = Skipped, "no provider says what time it is"
		return row
	}
	var off []time.Duration
	for _, d := range all {
		off = append(off, d.ahead)
	}
	if ahead := median(off); ahead.Abs() > skewLimit {
		row.State = Warn
		row.Found = fmt.Sprintf("it is %s by the clocks of %s", direction(ahead), phrase.Count(len(all), "provider"))
		row.Do = "set the clock, for example with timedatectl set-ntp true: signatures, certificates and keys that expire go by it"
		return row
	}
	for _, d := range all {
		if d.ahead.Abs() > skewLimit {
			row.State = Warn
			row.Found = fmt.Sprintf("it is %s by the clock of %s alone", direction(d.ahead), d.provider)
			row.Do = "set the clock of the machine of " + d.provider + ", if it is yours"
			return row
		}
	}
	row.Found = "as those of " + phrase.Count(len(all), "provider")
	return row
}

// median of durations. Of two in the middle it is the smaller difference: one provider alone proves nothing about this machine.
func median(list []time.Duration) time.Duration {
	sorted := slices.Sorted(slices.Values(list))
	low, high := sorted[(len(sorted)-1)/2], sorted[len(sorted)/2]
	if low.Abs() < high.Abs() {
		return low
	}
	return high
}

func direction(ahead time.Duration) string {
	if ahead < 0 {
		return span(-ahead) + " slow"
	}
	return span(ahead) + " fast"
}
