// Package subject names every NATS subject, stream, consumer and bucket of the pipeline in one place.
package subject

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// AllWork matches the work of every stage.
const AllWork = workPrefix + ">"

const workPrefix = "hydra.v1.request."

// Work is where a request waits for a stage. A stage is a single token.
func Work(stage string) string { return workPrefix + stage }

// AllBackground matches the work of every stage for requests that no ingress owns.
const AllBackground = backgroundPrefix + ">"

const backgroundPrefix = "hydra.v1.background."

// Background is where such a request waits for a stage.
func Background(stage string) string { return backgroundPrefix + stage }

// AllRecordings matches the recorded answers to all requests.
const AllRecordings = "hydra.v1.response.*"

// Recording is where the answer to request rid is recorded: one subject per request, whose last message is the fence of all who write to it.
func Recording(rid string) string { return "hydra.v1.response." + rid }

// AllClaims matches the claims of all keys.
const AllClaims = claimPrefix + "*"

const claimPrefix = "hydra.v1.claim."

// Claim says which recorded answer a key of a client stands for; key is a single token. It is kept where recordings are.
func Claim(key string) string { return claimPrefix + key }

// Fact subjects. Facts are statements about something that happened; the session-writer stores them.
const (
	UsageRecorded = "hydra.v1.usage.recorded"
	// AllLogs matches the log facts of every category.
	AllLogs = "hydra.v1.log.*"
	// AllTurns matches the turn facts of every session.
	AllTurns = "hydra.v1.turn.*.*"
	// AllStored matches the facts of all stored responses.
	AllStored = storedPrefix + "*"
	// WebRecorded is the fact of what was fetched and searched for a request.
	WebRecorded = "hydra.v1.web.recorded"
	// AllWeb matches every fact of that kind.
	AllWeb = "hydra.v1.web.*"
	// AllUsage matches every usage fact.
	AllUsage = "hydra.v1.usage.*"
	// AllDead matches the dead letters of every stage.
	AllDead = "hydra.v1.dead.*"
)

// Control subjects, carried by core NATS.
const (
	// AllCancels matches the cancellation of any request.
	AllCancels = "hydra.v1.cancel.*"
	// AllCredits matches the flow-control credit of any request.
	AllCredits = "hydra.v1.credit.*" //nolint:gosec // a subject, no credential
)

// Streams.
const (
	WorkStream       = "HYDRA_WORK"
	BackgroundStream = "HYDRA_BACKGROUND"
	RecordingsStream = "HYDRA_RESPONSES"
	FactsStream      = "HYDRA_FACTS"
	DeadStream       = "HYDRA_DEAD"
)

// Key-value buckets and the object store of bodies above the payload limit.
const (
	StateBucket    = "hydra_state"
	CatalogBucket  = "hydra_catalog"
	KeysBucket     = "hydra_keys" // keys added at run time, sealed
	WebCacheBucket = "hydra_webcache"
	SlotsBucket    = "hydra_slots"
	QueueBucket    = "hydra_queue" // requests that wait for a slot
	DialogueBucket = "hydra_dialogues"
	BodiesBucket   = "hydra_bodies"
	KeywordsBucket = "hydra_keywords"
	RestsBucket    = "hydra_rests"    // open circuits and cooldowns of keys that outlast a restart
	SettingsBucket = "hydra_settings" // a copy of the settings that are stored in the database

	ClientKeysBucket   = "hydra_client_keys"   // named keys of clients, as hashes
	ClientCountsBucket = "hydra_client_counts" // what they have used of their limits in this minute
)

// Reply is where the frames of request rid go: one subject per request, below the ingress that owns it.
func Reply(ingress, rid string) string { return "hydra.v1.reply." + ingress + "." + rid }

// Replies matches the replies to every request of one ingress.
func Replies(ingress string) string { return "hydra.v1.reply." + ingress + ".*" }

// Cancel tells whoever works on rid to stop.
func Cancel(rid string) string { return "hydra.v1.cancel." + rid }

// Credit tells whoever streams rid how many bytes the client has taken.
func Credit(rid string) string { return "hydra.v1.credit." + rid }

// Fence is where a worker asks the owner of a request whether to run a delivery that another worker may have had.
func Fence(ingress string) string { return "hydra.v1.fence." + ingress }

// Alive is where workers report which requests of an ingress they have.
func Alive(ingress string) string { return "hydra.v1.alive." + ingress }

// HandBack is where a worker that stops says which requests of an ingress it gives back.
func HandBack(ingress string) string { return "hydra.v1.handback." + ingress }

// Worker is where a worker is asked whether it has a request.
func Worker(id string) string { return "hydra.v1.worker." + id }

// Dead is where stage puts what it could not process.
func Dead(stage string) string { return "hydra.v1.dead." + stage }

// Log is the subject of log facts of a category; the category must be a single token.
func Log(category string) string { return "hydra.v1.log." + strings.ToLower(category) }

// Turn is the subject of turn facts of a session, whose id may hold what a subject may not; what is the kind of the fact, or "*".
func Turn(session, what string) string {
	sum := sha256.Sum256([]byte(session))
	return turnPrefix + hex.EncodeToString(sum[:16]) + "." + what
}

const turnPrefix = "hydra.v1.turn."

// IsTurn says whether a subject is that of a turn fact.
func IsTurn(subj string) bool { return strings.HasPrefix(subj, turnPrefix) }

const storedPrefix = "hydra.v1.stored."

// Stored is the subject of the fact of a stored response, whose id, as clients give it, may hold what a subject may not.
func Stored(response string) string {
	sum := sha256.Sum256([]byte(response))
	return storedPrefix + hex.EncodeToString(sum[:16])
}

// IsStored says whether a subject is that of a stored response.
func IsStored(subj string) bool { return strings.HasPrefix(subj, storedPrefix) }

// Query is the request-reply subject of one operation of a service.
func Query(service, op string) string { return "hydra.v1.query." + service + "." + op }

// QueryInstance is Query for one instance of a service.
func QueryInstance(service, instance, op string) string { return Query(service, instance) + "." + op }

// Matches says whether a subject is one of a pattern with "*" and ">", by the rule of NATS.
func Matches(pattern, subj string) bool {
	p, s := strings.Split(pattern, "."), strings.Split(subj, ".")
	for i, token := range p {
		if token == ">" {
			return len(s) > i
		}
		if i >= len(s) || token != "*" && token != s[i] {
			return false
		}
	}
	return len(p) == len(s)
}

// Last gives the last token of a subject: the request id of reply, cancel and credit subjects.
func Last(subj string) string { return subj[strings.LastIndexByte(subj, '.')+1:] }

// Kind is what a fact is about: the third token of its subject, such as usage.
func Kind(subj string) string {
	kind, _, _ := strings.Cut(strings.TrimPrefix(subj, "hydra.v1."), ".")
	return kind
}
