package intent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"hydrallm/shared/bus"
	"hydrallm/shared/config"
	"hydrallm/shared/fault"
	"hydrallm/shared/lifecycle"
	"hydrallm/shared/query"
	"hydrallm/shared/subject"
)

// Limits of keywords.
const (
	shortestKeyword = 2 // characters
	longestKeyword  = 60
	maxKeywords     = 200 // of one language; the oldest go first
)

// Keywords keeps the keywords of all enrichers. What is in the bucket counts; files only say with what it begins. It is a lifecycle.Service: while it
// runs, the classifier has what is in the bucket.
type Keywords struct {
	*lifecycle.Switch[following]

	bus        *bus.Bus
	dir        string // of files; "" for none
	classifier *Classifier
	learner    *learner
	log        *slog.Logger
}

// following is what exists between Start and Stop.
type following struct {
	bucket *bus.Bucket
	watch  *bus.Watch
}

// NewKeywords makes the keeper of the keywords of a classifier.
func NewKeywords(b *bus.Bus, cfg config.Intent, c *Classifier, log *slog.Logger) (*Keywords, error) {
	l, err := newLearner(cfg, log)
	if err != nil {
		return nil, err
	}
	k := &Keywords{bus: b, dir: cfg.KeywordsDir, classifier: c, learner: l, log: log}
	k.Switch = lifecycle.NewSwitch(k.begin, k.end)
	return k, nil
}

func (k *Keywords) begin(ctx context.Context, f *following) (err error) {
	if f.bucket, err = k.bus.Bucket(ctx, subject.KeywordsBucket); err != nil {
		return err
	}
	if err := k.seed(ctx, f.bucket); err != nil {
		return err
	}
	lists := map[string][]string{}
	f.watch, err = f.bucket.Watch(ctx, "*", func(e bus.Entry) {
		list, err := readKeywords(e.Value)
		if err != nil && !e.Deleted {
			k.log.Warn("keywords can't be read", slog.String("lang", e.Key), slog.Any("error", err))
			return
		}
		lists[e.Key] = list
		k.classifier.UseKeywords(lists)
	})
	return err
}

func (k *Keywords) end(_ context.Context, f *following) error {
	f.watch.Stop()
	k.learner.ollama.client.CloseIdleConnections()
	return nil
}

// seed gives languages that nobody has given keywords yet those of their files.
func (k *Keywords) seed(ctx context.Context, bucket *bus.Bucket) error {
	for lang, list := range KeywordFiles(k.dir, k.log) {
		if len(list) == 0 {
			continue
		}
		data, err := json.Marshal(list)
		if err != nil {
			return fmt.Errorf("encoding keywords: %w", err)
		}
		if _, err := bucket.Create(ctx, lang, data); err != nil && !errors.Is(err, bus.ErrConflict) {
			return err
		}
	}
	return nil
}

// KeywordFiles reads the files web_keywords.<language>.json of a directory, "" for none. One that can't be read is left as it is, with a warning.
func KeywordFiles(dir string, log *slog.Logger) map[string][]string {
	lists := map[string][]string{}
	if dir == "" {
		return lists
	}
	for _, lang := range languages {
		name := "web_keywords." + lang + ".json"
		data, err := readFile(os.DirFS(dir), name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		var list []string
		if err == nil {
			list, err = readKeywords(data)
		}
		if err != nil {
			log.Warn("keywords can't be used", slog.String("file", name), slog.Any("error", err))
			continue
		}
		lists[lang], _ = appendKeywords(nil, list)
	}
	return lists
}

// readKeywords reads a JSON array of texts; nothing is an empty one.
func readKeywords(data []byte) (list []string, err error) {
	if len(data) == 0 {
		return nil, nil
	}
	return list, json.Unmarshal(data, &list)
}

// cleanKeyword gives the form in which a keyword is kept; false for what is none.
func cleanKeyword(keyword string) (string, bool) {
	keyword = norm.NFC.String(strings.TrimSpace(keyword))
	n := utf8.RuneCountInString(keyword)
	ok := shortestKeyword <= n && n <= longestKeyword && utf8.RuneCountInString(fold(keyword)) >= shortestKeyword &&
		utf8.ValidString(keyword) && !strings.ContainsFunc(keyword, unicode.IsControl)
	return keyword, ok
}

// appendKeywords adds keywords that are new, in any case, and drops the oldest that are too many. list is not changed.
func appendKeywords(list, keywords []string) (all, added []string) {
	all = slices.Clone(list)
	known := map[string]bool{}
	for _, one := range list {
		known[fold(one)] = true
	}
	for _, one := range keywords {
		one, ok := cleanKeyword(one)
		if !ok || known[fold(one)] {
			continue
		}
		known[fold(one)] = true
		all, added = append(all, one), append(added, one)
	}
	return all[max(0, len(all)-maxKeywords):], added[max(0, len(added)-maxKeywords):]
}

// Handle answers the operations on keywords. They work between Start and Stop.
func (k *Keywords) Handle(h query.Handlers) {
	query.GetKeywords.Handle(h, func(ctx context.Context, _ query.None) (answer query.Keywords, err error) {
		if answer.Korean, _, err = k.list(ctx, "ko"); err == nil {
			answer.English, _, err = k.list(ctx, "en")
		}
		return answer, err
	})
	query.AddKeywords.Handle(h, func(ctx context.Context, q query.NewKeywords) (answer query.KeywordsAdded, err error) {
		if !slices.Contains(languages, q.Lang) {
			return answer, &fault.Fault{Kind: fault.Invalid, Param: "lang", Message: "'lang' must be one of " + strings.Join(languages, ", ")}
		}
		answer = query.KeywordsAdded{Status: query.Success, Lang: q.Lang}
		answer.Added, err = k.add(ctx, q.Lang, q.Keywords)
		return answer, err
	})
	query.LearnKeywords.Handle(h, func(ctx context.Context, q query.Missed) (answer query.Learned, err error) {
		answer = query.Learned{Status: query.Success, Query: q.Query, Added: []string{}}
		byLanguage := k.learner.phrases(ctx, q.Query)
		for _, lang := range slices.Sorted(maps.Keys(byLanguage)) {
			added, err := k.add(ctx, lang, byLanguage[lang])
			if err != nil {
				return answer, err
			}
			answer.Added = append(answer.Added, added...)
		}
		return answer, nil
	})
}

// errStopped answers what comes before Start and after Stop.
var errStopped = fault.New(fault.Unavailable, "The keywords can't be had at the moment")

// list reads the keywords of a language; revision 0 says that nobody has given any.
func (k *Keywords) list(ctx context.Context, lang string) (list []string, revision uint64, err error) {
	f := k.Running()
	if f == nil {
		return nil, 0, errStopped
	}
	e, err := f.bucket.Get(ctx, lang)
	if errors.Is(err, bus.ErrKeyNotFound) {
		return []string{}, 0, nil
	}
	if err != nil {
		return nil, 0, err
	}
	if list, err = readKeywords(e.Value); err != nil {
		k.log.Warn("keywords can't be read", slog.String("lang", lang), slog.Any("error", err))
		list = nil // what is added now replaces them
	}
	if list == nil {
		list = []string{}
	}
	return list, e.Revision, nil
}

// add adds keywords of a language. Others may do so at the same time: nobody's keyword is lost.
func (k *Keywords) add(ctx context.Context, lang string, keywords []string) (added []string, err error) {
	for {
		list, revision, err := k.list(ctx, lang)
		if err != nil {
			return nil, err
		}
		all, added := appendKeywords(list, keywords)
		if len(added) == 0 {
			return []string{}, nil
		}
		data, err := json.Marshal(all)
		if err != nil {
			return nil, fmt.Errorf("encoding keywords: %w", err)
		}
		bucket := k.Running()
		if bucket == nil {
			return nil, errStopped
		}
		if revision == 0 {
			_, err = bucket.bucket.Create(ctx, lang, data)
		} else {
			_, err = bucket.bucket.Update(ctx, lang, data, revision)
		}
		if !errors.Is(err, bus.ErrConflict) {
			return added, err
		}
	}
}
