package natsrights

import (
	"slices"
	"strings"

	"hydrallm/shared/contract"
	"hydrallm/shared/query"
	"hydrallm/shared/subject"
	"hydrallm/shared/topology"
)

// Ingress is the service that takes from no consumer; the names of the others are those of their consumers.
const Ingress = "ingress"

// Services are those that have rights, by the names of their binaries.
func Services() []string {
	return []string{Ingress, topology.Analyzer, topology.Enricher, topology.Dispatcher, topology.SessionWriter}
}

// Rights are subjects, with wildcards. Whoever gets a question may answer it besides (allow_responses).
type Rights struct{ Publish, Subscribe []string }

// Of gives the rights of a service, sorted.
func Of(service string) Rights {
	var r Rights
	r.everybody(service)
	switch service {
	case Ingress:
		r.owns()
		r.hands(contract.StageSession, contract.StageReceived, contract.StageAnalyzed, contract.StageEnriched)
		r.publish(subject.AllLogs)
		r.follows(subject.CatalogBucket, subject.StateBucket, subject.ClientKeysBucket)
		r.changes(subject.ClientKeysBucket, subject.ClientCountsBucket)
		r.records()
		r.publish(subject.AllClaims)
		r.consumes(subject.RecordingsStream)
		r.publish(api("STREAM.PURGE", subject.RecordingsStream)) // a response that its client deletes
		r.publish(subject.Worker("*"))                           // whether a worker still has a recorded request
		for _, s := range []string{query.Control, query.Dispatcher, query.Enricher, query.SessionWriter} {
			r.publish(subject.Query(s, ">"))
		}
	case topology.Analyzer:
		r.works(service)
		r.hands(contract.StageAnalyzed, contract.StageEnriched)
		r.publish(subject.AllLogs)
		r.follows(subject.CatalogBucket, subject.StateBucket)
	case topology.Enricher:
		r.works(service)
		r.answers(query.Enricher)
		r.hands(contract.StageEnriched)
		r.publish(subject.AllLogs, subject.WebRecorded)
		r.follows(subject.KeywordsBucket)
		r.changes(subject.KeywordsBucket, subject.WebCacheBucket)
	case topology.Dispatcher:
		r.works(service)
		r.answers(query.Dispatcher)
		r.publish(subject.UsageRecorded, subject.AllLogs, subject.AllTurns, subject.AllStored)
		r.follows(subject.StateBucket, subject.CatalogBucket, subject.KeysBucket, subject.RestsBucket, subject.QueueBucket)
		r.changes(subject.StateBucket, subject.CatalogBucket, subject.KeysBucket, subject.RestsBucket, subject.SlotsBucket, subject.QueueBucket, subject.DialogueBucket)
	case topology.SessionWriter:
		r.works(service)
		r.answers(query.SessionWriter)
		r.owns() // of the requests to the model that compacts sessions
		r.hands(contract.StageReceived, contract.StageAnalyzed, contract.StageEnriched)
		r.publish(subject.AllTurns, api("STREAM.MSG.GET", subject.FactsStream), api("STREAM.PURGE", subject.FactsStream))
		r.changes(subject.SettingsBucket)
		r.follows(subject.KeysBucket, subject.ClientKeysBucket, subject.KeywordsBucket, subject.RestsBucket) // for backups
		r.alters()
	}
	for _, list := range []*[]string{&r.Publish, &r.Subscribe} {
		slices.Sort(*list)
		*list = slices.Compact(*list)
	}
	return r
}

// everybody is what every service does: it brings the server to the wanted state, offloads large bodies and facts, follows the settings, shows that it is there,
// and reads its configuration again when it is told to.
func (r *Rights) everybody(service string) {
	r.subscribe("_INBOX."+service+".>", "$SRV.>")
	r.publish(api("INFO"), api("STREAM.NAMES"))
	for _, stream := range streams() {
		r.publish(api("STREAM.CREATE", stream), api("STREAM.INFO", stream))
	}
	for stream, list := range (topology.Config{}).Consumers() {
		for _, c := range list {
			if topology.Owner(c.Durable) != service {
				continue
			}
			made := api("CONSUMER.CREATE", stream, c.Durable)
			if c.FilterSubject != "" {
				made += "." + c.FilterSubject
			}
			r.publish(made, api("CONSUMER.INFO", stream, c.Durable), api("CONSUMER.MSG.NEXT", stream, c.Durable), "$JS.ACK."+stream+"."+c.Durable+".>")
		}
	}
	bodies := "OBJ_" + subject.BodiesBucket
	r.publish("$O."+subject.BodiesBucket+".>", api("DIRECT.GET", bodies, ">"), api("CONSUMER.CREATE", bodies, ">"), api("CONSUMER.DELETE", bodies, "*"),
		api("STREAM.PURGE", bodies), "$JS.FC."+bodies+".>")
	r.follows(subject.SettingsBucket)
	r.publish("$KV." + subject.StateBucket + ".unit.*")
	r.answers(query.Control)
}

// streams names everything that the server keeps for the pipeline.
func streams() (names []string) {
	var cfg topology.Config
	for _, s := range cfg.Streams() {
		names = append(names, s.Name)
	}
	for _, b := range cfg.Buckets() {
		names = append(names, "KV_"+b.Bucket)
	}
	return append(names, "OBJ_"+cfg.Bodies().Bucket)
}

// works is what a worker does beside its work: it tells the owners of requests, and other workers, and answers clients.
func (r *Rights) works(service string) {
	r.publish(subject.Reply("*", "*"), subject.Fence("*"), subject.Alive("*"), subject.HandBack("*"), subject.Worker("*"), subject.Dead(service))
	if service == topology.SessionWriter {
		r.publish(subject.Dead(topology.Session))
	}
	r.subscribe(subject.AllCancels, subject.AllCredits, subject.Worker("*"))
	r.publish(api("STREAM.MSG.GET", subject.WorkStream), api("STREAM.MSG.GET", subject.BackgroundStream)) // after an outage: whether a message still is the one of its number
	r.records()
}

// owns is what who awaits the answers of requests does.
func (r *Rights) owns() {
	r.subscribe(subject.Reply("*", "*"), subject.Fence("*"), subject.Alive("*"), subject.HandBack("*"))
	r.publish(subject.AllCancels, subject.AllCredits)
}

// hands is to hand requests to stages.
func (r *Rights) hands(stages ...contract.Stage) {
	for _, s := range stages {
		r.publish(subject.Work(string(s)), subject.Background(string(s)), subject.Alive("*"))
	}
}

// records is to read and write recorded answers.
func (r *Rights) records() {
	r.publish(subject.AllRecordings, api("STREAM.MSG.GET", subject.RecordingsStream))
}

// consumes is to read a stream with consumers that are made for it.
func (r *Rights) consumes(stream string) {
	r.publish(api("CONSUMER.CREATE", stream, ">"), api("CONSUMER.INFO", stream, "*"), api("CONSUMER.MSG.NEXT", stream, "*"), api("CONSUMER.DELETE", stream, "*"),
		api("STREAM.MSG.GET", stream))
}

// follows is to be told what is in buckets.
func (r *Rights) follows(buckets ...string) {
	for _, b := range buckets {
		r.consumes("KV_" + b)
	}
}

// changes is to get single values of buckets and to write them.
func (r *Rights) changes(buckets ...string) {
	for _, b := range buckets {
		r.publish(api("DIRECT.GET", "KV_"+b, ">"), "$KV."+b+".>")
	}
}

// alters is to change streams and buckets that are there.
func (r *Rights) alters() {
	for _, stream := range streams() {
		r.publish(api("STREAM.UPDATE", stream))
	}
}

func (r *Rights) answers(service string) { r.subscribe(subject.Query(service, ">")) }

func (r *Rights) publish(subjects ...string) { r.Publish = append(r.Publish, subjects...) }

func (r *Rights) subscribe(subjects ...string) { r.Subscribe = append(r.Subscribe, subjects...) }

func api(tokens ...string) string { return "$JS.API." + strings.Join(tokens, ".") }
