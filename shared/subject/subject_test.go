package subject_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"hydrallm/shared/subject"
)

func TestSubjects(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ got, want string }{
		"work":         {subject.Work("received"), "hydra.v1.request.received"},
		"background":   {subject.Background("received"), "hydra.v1.background.received"},
		"recording":    {subject.Recording("r1"), "hydra.v1.response.r1"},
		"reply":        {subject.Reply("i1", "r1"), "hydra.v1.reply.i1.r1"},
		"replies":      {subject.Replies("i1"), "hydra.v1.reply.i1.*"},
		"cancel":       {subject.Cancel("r1"), "hydra.v1.cancel.r1"},
		"credit":       {subject.Credit("r1"), "hydra.v1.credit.r1"},
		"fence":        {subject.Fence("i1"), "hydra.v1.fence.i1"},
		"hand back":    {subject.HandBack("i1"), "hydra.v1.handback.i1"},
		"dead letters": {subject.Dead("analyzer"), "hydra.v1.dead.analyzer"},
		"log":          {subject.Log("LLM_EXECUTION"), "hydra.v1.log.llm_execution"},
		"query":        {subject.Query("session-writer", "stats"), "hydra.v1.query.session-writer.stats"},
		"instance":     {subject.QueryInstance("dispatcher", "d1", "status"), "hydra.v1.query.dispatcher.d1.status"},
		"last token":   {subject.Last("hydra.v1.reply.i1.r1"), "r1"},
		"single token": {subject.Last("r1"), "r1"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, tt.want, tt.got)
		})
	}
}

func TestMatches(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		pattern, subj string
		want          bool
	}{
		"equal":            {"a.b", "a.b", true},
		"star":             {"a.*.c", "a.b.c", true},
		"star is one":      {"a.*", "a.b.c", false},
		"tail":             {"a.>", "a.b.c", true},
		"tail needs one":   {"a.>", "a", false},
		"shorter":          {"a.b", "a", false},
		"longer":           {"a", "a.b", false},
		"everything":       {">", "a", true},
		"other":            {"a", "b", false},
		"star needs token": {"a.*", "a", false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, tt.want, subject.Matches(tt.pattern, tt.subj))
		})
	}
}

// What is published must be inside the stream or the subscription that is meant for it, and in no other.
func TestPatternsCoverTheirSubjects(t *testing.T) {
	t.Parallel()
	patterns := []string{
		subject.AllWork, subject.AllLogs, subject.AllTurns, subject.AllUsage, subject.AllDead, subject.AllCancels, subject.AllCredits,
		subject.Replies("i1"), subject.AllBackground, subject.AllRecordings, subject.AllClaims,
	}
	tests := map[string]struct{ subj, pattern string }{
		"work":       {subject.Work("received"), subject.AllWork},
		"background": {subject.Background("received"), subject.AllBackground},
		"recording":  {subject.Recording("r1"), subject.AllRecordings},
		"claim":      {subject.Claim("k1"), subject.AllClaims},
		"usage":      {subject.UsageRecorded, subject.AllUsage},
		"log":        {subject.Log("ROUTING"), subject.AllLogs},
		"dead":       {subject.Dead("enricher"), subject.AllDead},
		"cancel":     {subject.Cancel("r1"), subject.AllCancels},
		"credit":     {subject.Credit("r1"), subject.AllCredits},
		"reply":      {subject.Reply("i1", "r1"), subject.Replies("i1")},
		"no fence":   {subject.Fence("i1"), ""},
		"no stop":    {subject.HandBack("i1"), ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, p := range patterns {
				require.Equal(t, p == tt.pattern, subject.Matches(p, tt.subj), "%s against %s", tt.subj, p)
			}
		})
	}
}
