package stream

import (
	"slices"
	"strconv"
	"strings"

	"hydrallm/services/dispatcher/internal/answer"
	"hydrallm/shared/openai"
	"hydrallm/shared/openai/rawjson"
)

// Usage is the number of tokens of an answer.
type Usage = openai.Usage

// UsageOf reads the usage of a whole answer.
func UsageOf(c *answer.Chunk) Usage { return openai.ParseUsage(c.Usage) }

// noteUsage keeps the last usage: upstreams send running totals (STR-15). Kept says that what is kept is not what came.
func (f *Filter) noteUsage(c *answer.Chunk) (kept bool) {
	if c.Usage == nil {
		return false
	}
	usage, kept := withKnown(f.usage, c.Usage)
	if kept {
		usage = withTotal(usage)
	}
	f.usage = append(f.usage[:0], usage...)
	f.end.Usage = nil
	return kept
}

// keepUsage keeps a chunk that reports the usage, for the end. Clients get exactly one (STR-07).
func (f *Filter) keepUsage(c *answer.Chunk, changed bool) {
	if c.UsageInside { // clients do not find it there
		return
	}
	kept := *c
	kept.Raw, kept.Data, kept.Usage = slices.Clone(c.Raw), slices.Clone(c.Data), f.usage
	if changed && c.Data != nil {
		kept.Raw, kept.Data = nil, rawjson.AppendSet(nil, c.Data, "usage", f.usage)
	}
	kept.Choices, kept.ID, kept.Created, kept.Model = nil, nil, nil, nil
	f.end.Usage = &kept
}

// maxUsage bounds how many members of a usage are compared. No known upstream has more than 20.
const maxUsage = 64

// withKnown gives the newest usage with the counts that are known from an earlier one where it says zero: totals do not fall, but some upstreams
// end with an empty form. It copies the newest usage if it has to change.
func withKnown(known, newest []byte) (usage []byte, changed bool) {
	left := maxUsage
	for m := range rawjson.Members(known) {
		if left--; left < 0 {
			break
		}
		name, before := string(m.Name()), m.Value.Of(known)
		now := rawjson.Get(newest, name)
		switch {
		case len(now) == 0 && name != "prompt_tokens" && name != "completion_tokens":
			continue
		case strings.HasSuffix(name, "_details") && before[0] == '{' && len(now) > 0 && now[0] == '{':
			inner, differs := withKnown(before, now)
			if !differs {
				continue
			}
			before = inner
		case !positive(before) || positive(now) || len(now) > 0 && now[0] != 'n' && now[0] != '0' && now[0] != '-':
			continue
		}
		newest, changed = rawjson.AppendSet(nil, newest, name, before), true
	}
	return newest, changed
}

// positive says whether a raw value is a number above zero.
func positive(raw []byte) bool {
	if len(raw) == 0 || raw[0] < '0' || raw[0] > '9' {
		return false
	}
	n, err := strconv.ParseFloat(string(raw), 64)
	return err == nil && n > 0
}

// withTotal gives a usage whose total is not less than what it is made of.
func withTotal(usage []byte) []byte {
	u := openai.ParseUsage(usage)
	if sum := u.Prompt + u.Completion; u.Total < sum || rawjson.Get(usage, "total_tokens") == nil {
		return rawjson.AppendSet(nil, usage, "total_tokens", strconv.AppendInt(nil, sum, 10))
	}
	return usage
}
