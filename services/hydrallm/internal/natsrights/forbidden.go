package natsrights

import (
	"slices"
	"strings"

	"hydrallm/shared/subject"
)

// Forbidden gives subjects that a service must not publish or subscribe to: one of each kind that any other service may, and some that nobody may.
func Forbidden(service string) (publish, subscribe []string) {
	own := Of(service)
	publish = []string{"$JS.API.STREAM.DELETE.HYDRA_FACTS", "$JS.API.STREAM.SNAPSHOT.HYDRA_FACTS", "$SYS.REQ.SERVER.PING", "_INBOX.operator.x", "elsewhere"}
	subscribe = []string{">", "_INBOX.>", "$KV.>", "$SYS.>", "elsewhere"}
	for _, other := range Services() {
		for _, s := range Of(other).Publish {
			if s = sample(s); !allowed(own.Publish, s) {
				publish = append(publish, s)
			}
		}
		for _, s := range Of(other).Subscribe {
			if s = sample(s); !allowed(own.Subscribe, s) {
				subscribe = append(subscribe, s)
			}
		}
	}
	for _, list := range []*[]string{&publish, &subscribe} {
		slices.Sort(*list)
		*list = slices.Compact(*list)
	}
	return publish, subscribe
}

// sample is a subject that a pattern matches.
func sample(pattern string) string { return strings.NewReplacer("*", "x", ">", "x").Replace(pattern) }

func allowed(patterns []string, subj string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return subject.Matches(p, subj) })
}

// MayPublish says whether a subject is among those that may be published to.
func (r Rights) MayPublish(subj string) bool { return allowed(r.Publish, subj) }
