package natsrights_test

import (
	"io/fs"
	"os"
	"path"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"hydrallm/services/hydrallm/internal/natsrights"
	"hydrallm/shared/subject"
	"hydrallm/shared/topology"
)

const root = "../../../../"

var (
	subjectConstant = regexp.MustCompile(`(?m)^\s+(\w+Bucket)\s+= "(hydra_\w+)"`)
	usedBucket      = regexp.MustCompile(`\.Bucket\(\w+, subject\.(\w+)\)`)
	usedFact        = regexp.MustCompile(`\bsubject\.(UsageRecorded|WebRecorded|Log|Turn|Stored)\b`)
	publishedFact   = regexp.MustCompile(`PublishFact\(.*?\bsubject\.(\w+)`)
)

// shares are the directories of shared code that opens buckets, with the services that run it.
var shares = map[string][]string{
	"shared/process": natsrights.Services(), "shared/settings": natsrights.Services(),
	"shared/modelindex": {"ingress", "analyzer", "dispatcher"}, "shared/dispatcherhealth": {"ingress", "analyzer"},
	"shared/decisionlog": {"ingress", "analyzer"},
}

// facts are the subjects of facts, by their names in the code.
var facts = map[string]string{
	"UsageRecorded": subject.UsageRecorded, "WebRecorded": subject.WebRecorded,
	"Log": subject.Log("x"), "Turn": subject.Turn("x", "y"), "Stored": subject.Stored("x"),
}

// what the code of a service opens and publishes is among its rights, also what no test comes to use.
func TestRightsCoverTheCode(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(root + "shared/subject/subject.go")
	require.NoError(t, err)
	buckets := map[string]string{}
	for _, m := range subjectConstant.FindAllStringSubmatch(string(text), -1) {
		buckets[m[1]] = m[2]
	}
	require.Greater(t, len(buckets), 10)
	opened, published := 0, 0
	check := func(service, dir string) {
		rights, fact := natsrights.Of(service), usedFact
		if service == topology.SessionWriter { // which reads them
			fact = publishedFact
		}
		eachSource(t, dir, func(file, code string) {
			for _, m := range usedBucket.FindAllStringSubmatch(code, -1) {
				bucket, ok := buckets[m[1]]
				require.True(t, ok, "%s: %s", file, m[1])
				may := rights.MayPublish("$JS.API.CONSUMER.CREATE.KV_"+bucket+".x.y") || rights.MayPublish("$JS.API.DIRECT.GET.KV_"+bucket+".x") ||
					rights.MayPublish("$KV."+bucket+".unit.x")
				require.True(t, may, "%s opens %s, to which %s has no right: add it in services/hydrallm/internal/natsrights", file, bucket, service)
				opened++
			}
			for _, m := range fact.FindAllStringSubmatch(code, -1) {
				subj, ok := facts[m[1]]
				require.True(t, ok, "%s publishes %s, which is not known here", file, m[1])
				require.True(t, rights.MayPublish(subj), "%s publishes %s, to which %s has no right: add it in services/hydrallm/internal/natsrights", file, subj, service)
				published++
			}
		})
	}
	for _, service := range natsrights.Services() {
		check(service, "services/"+service)
	}
	for dir, services := range shares {
		for _, service := range services {
			check(service, dir)
		}
	}
	require.Positive(t, opened)
	require.Positive(t, published)
	eachSource(t, "shared", func(file, code string) { // code that this test does not know of
		dir := path.Dir(file)
		if usedBucket.MatchString(code) {
			require.Contains(t, shares, dir, "%s opens a bucket", file)
		}
	})
}

// eachSource calls fn with the files of a directory that are no tests.
func eachSource(t *testing.T, dir string, fn func(file, code string)) {
	t.Helper()
	files := os.DirFS(root)
	require.NoError(t, fs.WalkDir(files, dir, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return err
		}
		code, err := fs.ReadFile(files, name)
		fn(name, string(code))
		return err
	}))
}

// whatever a stream holds somebody may write, and nobody may delete streams, read dead letters or hear everything.
func TestRightsFitTogether(t *testing.T) {
	t.Parallel()
	anybody := func(may func(natsrights.Rights) bool) (who []string) {
		for _, s := range natsrights.Services() {
			if may(natsrights.Of(s)) {
				who = append(who, s)
			}
		}
		return who
	}
	for _, stream := range (topology.Config{}).Streams() {
		for _, subj := range stream.Subjects {
			subj = strings.NewReplacer("*", "enriched", ">", "enriched").Replace(subj)
			if subj == subject.Dead("enriched") {
				subj = subject.Dead(topology.Enricher)
			}
			if subj == "hydra.v1.usage.enriched" {
				subj = subject.UsageRecorded
			}
			if subj == "hydra.v1.web.enriched" {
				subj = subject.WebRecorded
			}
			require.NotEmpty(t, anybody(func(r natsrights.Rights) bool { return r.MayPublish(subj) }), "nobody may publish %s of stream %s", subj, stream.Name)
		}
	}
	for subj, want := range map[string][]string{
		subject.Work("enriched"):                {"ingress", "analyzer", "enricher", "session-writer"},
		subject.Recording("x"):                  {"ingress", "analyzer", "enricher", "dispatcher", "session-writer"},
		subject.UsageRecorded:                   {"dispatcher"},
		subject.Turn("x", "y"):                  {"dispatcher", "session-writer"},
		subject.WebRecorded:                     {"enricher"},
		"$KV.hydra_keys.x":                      {"dispatcher"},
		"$KV.hydra_settings.x":                  {"session-writer"},
		"$KV.hydra_client_keys.x":               {"ingress"},
		"$JS.API.STREAM.UPDATE.HYDRA_WORK":      {"session-writer"},
		"$JS.API.STREAM.PURGE.HYDRA_FACTS":      {"session-writer"},
		"$JS.API.STREAM.PURGE.HYDRA_WORK":       nil,
		"$JS.API.STREAM.DELETE.HYDRA_WORK":      nil,
		"$JS.API.STREAM.MSG.GET.HYDRA_DEAD":     nil,
		"$JS.API.STREAM.MSG.GET.HYDRA_WORK":     {"analyzer", "enricher", "dispatcher", "session-writer"},
		"$JS.API.CONSUMER.CREATE.HYDRA_WORK.x":  nil,
		"$JS.API.CONSUMER.CREATE.HYDRA_FACTS.x": nil,
	} {
		require.Equal(t, want, anybody(func(r natsrights.Rights) bool { return r.MayPublish(subj) }), subj)
	}
}
