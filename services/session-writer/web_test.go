package sessionwriter

import (
	"testing"

	"hydrallm/shared/subject"
)

// a fact that tells of no request goes to the dead letters, and does not hold up the others.
func TestPoisonousWebRecord(t *testing.T) {
	t.Parallel()
	s := started(t, sqliteAddress(t))
	s.publish(t, subject.WebRecorded, "nothing of the web")
	s.publish(t, subject.WebRecorded, `{"visits":[{"kind":"web_fetch","url":"https://a.example/","status":"success"}]}`)
	awaitMetric(t, s.metrics.poisonous.WithLabelValues(kindWeb), 2)
	s.publish(t, subject.WebRecorded, `{"request_id":"r1","delivery":1,"visits":[{"kind":"web_fetch","url":"https://a.example/","status":"success","at":"2026-03-01T00:00:00Z"}]}`)
	awaitMetric(t, s.metrics.stored.WithLabelValues(kindWeb), 1)
}
