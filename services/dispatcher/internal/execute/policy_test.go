package execute

import (
	"testing"

	"github.com/stretchr/testify/require"

	"hydrallm/services/dispatcher/internal/classify"
)

// What follows from the verdict on a call (R-100, R-101, R-118, R-129, R-133, R-137, C-09, C-26, C-43).
func TestAfter(t *testing.T) {
	t.Parallel()
	var (
		keys      = linkFacts{callable: true, pooled: true, spare: true}
		lastKey   = linkFacts{callable: true, pooled: true}
		plain     = linkFacts{callable: true}
		alone     = linkFacts{callable: true, last: true}
		aloneKeys = linkFacts{callable: true, last: true, pooled: true, spare: true}
		usedUp    = linkFacts{pooled: true, spare: true}
		forLarge  = linkFacts{callable: true, large: true}
		bad       = failures(classify.BadOutput)
		tooLarge  = failures(classify.Size)
	)
	of := func(c classify.Class) classify.Verdict { return classify.Verdict{Class: c} }
	perModel := func(c classify.Class) classify.Verdict { return classify.Verdict{Class: c, PerModel: true} }
	for name, tc := range map[string]struct {
		s      situation
		v      classify.Verdict
		want   step
		lesson bool
	}{
		"answered":                                {situation{answered: true, link: keys}, of(classify.Success), finished, false},
		"answered, then broken":                   {situation{answered: true, link: keys}, of(classify.Upstream), finished, false},
		"answered, and the client left":           {situation{answered: true, link: keys}, of(classify.Cancelled), finished, false},
		"nobody waits":                            {situation{link: keys}, of(classify.Cancelled), stopped, false},
		"the client's mistake":                    {situation{link: keys}, of(classify.Client), refused, false},
		"the provider fails":                      {situation{link: plain}, of(classify.Upstream), nextLink, false},
		"the provider fails one key":              {situation{link: keys}, of(classify.Upstream), nextKey, false},
		"it fails the last key":                   {situation{link: lastKey}, perModel(classify.Upstream), nextKey, false},
		"it was called often enough":              {situation{link: usedUp}, of(classify.Upstream), nextLink, false},
		"a limit of one key":                      {situation{link: keys}, perModel(classify.Rate), nextKey, false},
		"a limit of the last key":                 {situation{link: lastKey}, perModel(classify.Rate), nextModel, false},
		"a budget of the last key":                {situation{link: lastKey}, perModel(classify.Quota), nextModel, false},
		"no key may use the model":                {situation{link: lastKey}, perModel(classify.Forbidden), nextModel, false},
		"a limit of the whole account":            {situation{link: lastKey}, of(classify.Rate), nextKey, false},
		"a limit for a model that was named":      {situation{pinned: true, link: lastKey}, perModel(classify.Rate), nextKey, false},
		"a limit of the last key, once too often": {situation{link: linkFacts{pooled: true}}, perModel(classify.Rate), nextLink, false},
		"a limit where there is no pool":          {situation{link: plain}, perModel(classify.Rate), nextLink, false},
		"a wrong key":                             {situation{link: keys}, of(classify.Auth), nextKey, false},
		"no money":                                {situation{link: keys}, of(classify.Payment), nextLink, false},
		"no money, provider named":                {situation{provider: true, link: keys}, of(classify.Payment), refused, false},
		"no money, model named":                   {situation{pinned: true, link: keys}, of(classify.Payment), refused, false},
		"a model is missing":                      {situation{link: plain}, of(classify.Model), nextModel, true},
		"a model is missing, once too often":      {situation{link: usedUp}, of(classify.Model), nextLink, true},
		"a model is missing, provider named":      {situation{provider: true, link: plain}, of(classify.Model), nextModel, true},
		"a model is missing that was named":       {situation{pinned: true, link: plain}, of(classify.Model), refused, false},
		"a model is gone that was named":          {situation{pinned: true, link: plain}, classify.Verdict{Class: classify.Model, Status: 410}, nextLink, false},
		"a model can't do it":                     {situation{link: plain}, of(classify.Incapable), nextModel, true},
		"a model can't do it, provider named":     {situation{provider: true, link: plain}, of(classify.Incapable), nextModel, true},
		"a model can't do it that was named":      {situation{pinned: true, link: plain}, of(classify.Incapable), refused, false},
		"too large":                               {situation{link: keys}, of(classify.Size), nextLink, false},
		"too large, model named":                  {situation{pinned: true, link: keys}, of(classify.Size), refused, false},
		"too large, provider named":               {situation{provider: true, link: keys}, of(classify.Size), refused, false},
		"too large for all":                       {situation{link: forLarge}, of(classify.Size), refused, false},
		"too large twice":                         {situation{link: plain, history: tooLarge}, of(classify.Size), refused, false},
		"not translatable":                        {situation{link: keys}, of(classify.Untranslatable), nextLink, false},
		"not translatable, model named":           {situation{pinned: true, link: keys}, of(classify.Untranslatable), refused, false},
		"bad output":                              {situation{link: plain}, of(classify.BadOutput), nextLink, false},
		"bad output, with keys":                   {situation{link: keys}, of(classify.BadOutput), nextKey, false},
		"bad output, no other link":               {situation{link: alone}, of(classify.BadOutput), onceMore, false},
		"bad output, no other link, with keys":    {situation{link: aloneKeys}, of(classify.BadOutput), onceMore, false},
		"bad output, once too often":              {situation{link: linkFacts{last: true}}, of(classify.BadOutput), nextLink, false},
		"bad output twice":                        {situation{link: plain, history: bad}, of(classify.BadOutput), refused, false},
		"bad output twice, as 200":                {situation{success: true, link: plain, history: bad}, of(classify.BadOutput), nextLink, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			next, lesson := after(tc.s, tc.v)
			require.Equal(t, tc.want, next)
			require.Equal(t, tc.lesson, lesson)
		})
	}
}

// No class, in no situation, leaves a link to be called without end: what may be called again may not once its calls are used up.
func TestEveryLinkEnds(t *testing.T) {
	t.Parallel()
	flags := func(n, bit int) bool { return n>>bit&1 == 1 }
	classes := []classify.Class{
		classify.Success, classify.Upstream, classify.Rate, classify.Quota, classify.Payment, classify.Auth, classify.Forbidden, classify.Model,
		classify.Client, classify.Size, classify.Untranslatable, classify.Incapable, classify.BadOutput, classify.Cancelled, "one of tomorrow",
	}
	for n := range 1 << 8 {
		for _, class := range classes {
			s := situation{
				success: flags(n, 0), pinned: flags(n, 1), provider: flags(n, 2),
				link: linkFacts{last: flags(n, 3), pooled: flags(n, 4), spare: flags(n, 5), large: flags(n, 6)},
			}
			v := classify.Verdict{Class: class, PerModel: flags(n, 7)}
			next, lesson := after(s, v)
			require.Contains(t, []step{stopped, refused, nextLink}, next, "%v %v", s, v)
			s.link.callable = true
			next, _ = after(s, v)
			require.NotEqual(t, finished, next, "%v %v", s, v)
			require.False(t, s.pinned && (lesson || next == nextModel), "what was named is not replaced: %v %v", s, v)
		}
	}
}

func failures(classes ...classify.Class) (h history) {
	for _, c := range classes {
		h = append(h, failed(c, false))
	}
	return h
}

func failed(c classify.Class, large bool) failure {
	return failure{Verdict: classify.Verdict{Class: c}, large: large}
}

// C-26, C-27: why no link could answer. There are two of them.
func TestEndings(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		h    history
		full bool
		want ending
	}{
		"nothing could be called":                {nil, false, unanswered},
		"all were busy":                          {nil, true, allBusy},
		"one was busy, one failed":               {failures(classify.Upstream), true, unanswered},
		"both failed":                            {failures(classify.Upstream, classify.Rate), false, unanswered},
		"too large, and nothing is larger":       {failures(classify.Upstream, classify.Size), false, atFault},
		"too large, and the large one is busy":   {failures(classify.Size), true, atFault},
		"too large, and the large one failed":    {history{failed(classify.Size, false), failed(classify.Upstream, true)}, false, unanswered},
		"the large one failed, then too large":   {history{failed(classify.Upstream, true), failed(classify.Size, false)}, false, unanswered},
		"too large, and can't be put to another": {history{failed(classify.Untranslatable, true), failed(classify.Size, false)}, false, atFault},
		"none can be asked":                      {failures(classify.Untranslatable, classify.Untranslatable), false, atFault},
		"one can't be asked":                     {failures(classify.Untranslatable), false, unanswered},
		"one can't be asked, one failed":         {failures(classify.Untranslatable, classify.Upstream), false, unanswered},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, tc.want, exhaustion{history: tc.h, all: len(tc.h) == 2, full: tc.full}.ending())
		})
	}
	missing := failures(classify.Model, classify.Model)
	require.Equal(t, atFault, exhaustion{history: missing, all: true, pinned: true}.ending(), "nobody has what was named (R-424)")
	require.Equal(t, unanswered, exhaustion{history: missing, all: true}.ending())
	require.Equal(t, unanswered, exhaustion{history: missing[:1], pinned: true}.ending())
}
