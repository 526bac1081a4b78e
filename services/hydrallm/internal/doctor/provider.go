package doctor

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"hydrallm/services/dispatcher"
	"hydrallm/shared/config"
)

// What counts as slow.
const (
	slowCall  = 5 * time.Second
	slowFirst = 15 * time.Second
)

// provider says what was found out about a provider.
func (d *doctor) provider(p config.Provider, found dispatcher.Examined) []Row {
	name := "provider " + p.ID
	rows, ok := d.connection(name, p, found.Legs)
	if !ok {
		return append(rows, Row{Check: name + ": keys, models, answers", State: Skipped, Found: "there is no connection"})
	}
	rows = append(rows, d.keys(name, p, found)...)
	rows = append(rows, d.models(name, found)...)
	return append(rows, d.answers(name, p, found)...)
}

// connection says how far the way to a provider leads.
func (d *doctor) connection(name string, p config.Provider, legs []dispatcher.Leg) (rows []Row, ok bool) {
	row := Row{Check: name + ": connection", State: OK}
	var times []string
	for _, leg := range legs {
		if leg.Err != nil {
			row.State = Fail
			row.Found, row.Do = d.unreached(p, leg)
			if d.optional(p) {
				row.State, row.Found, row.Do = Skipped, "there is no local Ollama, which is only used if there is one", ""
			}
			return []Row{row}, false
		}
		times = append(times, leg.Name+" "+span(leg.Took))
	}
	row.Found = strings.Join(times, ", ")
	return []Row{row}, true
}

// unreached says why there is no connection, and what to do.
func (d *doctor) unreached(p config.Provider, leg dispatcher.Leg) (found, do string) {
	setting := "providers." + p.ID + ".url"
	if errors.Is(leg.Err, context.DeadlineExceeded) || isTimeout(leg.Err) {
		return leg.Name + ": no answer within " + span(d.Limit), "look whether a firewall or VPN is in the way, and whether " + setting + " is right"
	}
	switch leg.Name {
	case "dns":
		if e, ok := errors.AsType[*net.DNSError](leg.Err); ok && e.IsNotFound {
			return "dns: there is no such host", "mend the host in " + setting + ", or the resolver of this machine"
		}
		return "dns: the host can't be looked up", "look at the resolver of this machine (/etc/resolv.conf), and whether it is online"
	case "tcp":
		if errors.Is(leg.Err, syscall.ECONNREFUSED) {
			return "tcp: connection refused", "start the server there, or mend the port in " + setting
		}
		return "tcp: no connection", "look whether this machine is online and the host in " + setting + " can be reached from it"
	}
	return tlsProblem(leg.Err, setting)
}

func tlsProblem(err error, setting string) (found, do string) {
	var invalid x509.CertificateInvalidError
	switch {
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return "tls: the certificate is expired, or not valid yet", "look at the clock of this machine, then at the certificate of the server"
	case isA[x509.UnknownAuthorityError](err):
		return "tls: the certificate is from an unknown authority", "give the authority to the system's certificates, or name its file in SSL_CERT_FILE"
	case isA[x509.HostnameError](err):
		return "tls: the certificate is for another host", "mend the host in " + setting + ": it must be one that the certificate names"
	case isA[tls.RecordHeaderError](err):
		return "tls: what listens there speaks no TLS", "write http:// in " + setting + ", or mend the port"
	}
	return "tls: the handshake fails", "look whether a proxy or firewall reads encrypted connections on the way, and at the server's TLS settings"
}

func isA[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

func isTimeout(err error) bool {
	e, ok := errors.AsType[net.Error](err)
	return ok && e.Timeout()
}

// keys says what the provider makes of each key.
func (d *doctor) keys(name string, p config.Provider, found dispatcher.Examined) (rows []Row) {
	if len(found.Keys) == 0 {
		return []Row{{
			Check: name + ": keys", State: Fail, Found: "it has no key",
			Do: "add one to providers." + p.ID + ".keys, or while the gateway runs with POST /v1/admin/keys",
		}}
	}
	good := slices.ContainsFunc(found.Keys, func(k dispatcher.ExaminedKey) bool { return k.Outcome.Class == dispatcher.ClassSuccess })
	answered := slices.ContainsFunc(found.Answers, func(a dispatcher.ExaminedAnswer) bool { return a.Outcome.Class == dispatcher.ClassSuccess })
	for _, k := range found.Keys {
		row := Row{Check: name + ": without a key"}
		if k.Mask != "" {
			row.Check = name + ": key " + strconv.Itoa(k.Index+1) + " " + k.Mask
		}
		row.State, row.Found, row.Do = d.judge(p, k.Outcome)
		switch c := k.Outcome.Class; {
		case c == dispatcher.ClassSuccess:
			row.Found = "accepted, " + span(k.Outcome.Took)
			if k.Mask == "" {
				row.Found = "no key is needed, " + span(k.Outcome.Took)
			}
			if k.Outcome.Took > slowCall {
				row.State, row.Do = Warn, "the list of models took long: look at the network and at the provider's status page"
			}
		case k.Mask == "" && c == dispatcher.ClassAuth:
			row.Do = "it wants a key: put one into providers." + p.ID + ".key"
		case unlisted(k.Outcome) && answered:
			row.State, row.Found, row.Do = OK, "the provider has no list of models ("+k.Outcome.Reason+"), and answers", ""
		case unlisted(k.Outcome) && !k.Outcome.HTML && d.Questions == dispatcher.NoQuestions:
			row.State, row.Found, row.Do = Warn, "the provider has no list of models ("+k.Outcome.Reason+"), so that nothing is known of the key", "run it without --no-stream"
		case (c == dispatcher.ClassQuota || c == dispatcher.ClassPayment) && good:
			row.State = Warn
		}
		rows = append(rows, row)
	}
	return rows
}

// unlisted says of a call for the list of models that the provider may just have none.
func unlisted(o dispatcher.Outcome) bool {
	return o.Status/100 == 4 && o.Class != dispatcher.ClassAuth && o.Class != dispatcher.ClassForbidden && o.Class != dispatcher.ClassRate &&
		o.Class != dispatcher.ClassQuota && o.Class != dispatcher.ClassPayment
}

// judge says what the outcome of a call means.
func (d *doctor) judge(p config.Provider, o dispatcher.Outcome) (state State, found, do string) {
	wait := ""
	if o.Wait > 0 {
		wait = ", for " + span(o.Wait)
	}
	detail := " (" + o.Reason + ")"
	setting := "providers." + p.ID
	switch o.Class {
	case dispatcher.ClassSuccess:
		return OK, "", ""
	case dispatcher.ClassAuth:
		return Fail, "refused: wrong, revoked or expired" + detail, "make a new key at the provider and put it in the place of this one"
	case dispatcher.ClassForbidden:
		return Fail, "valid, but not allowed" + detail, "allow the model or the API for the project of the key at the provider, or look whether it serves your region"
	case dispatcher.ClassRate:
		return Warn, "at its limit of requests" + wait + detail, "wait, or add keys or another provider; the gateway lets the key rest meanwhile"
	case dispatcher.ClassQuota:
		return Fail, "its quota is used up" + wait + detail, "wait for the next period, raise the limit at the provider, or add another key"
	case dispatcher.ClassPayment:
		return Fail, "the account has no balance" + detail, "top up the account at the provider"
	case dispatcher.ClassModel:
		return Fail, "there is no such model or path" + detail, "look whether " + setting + ".url ends with the version, such as /v1"
	case dispatcher.ClassCancelled:
		return Skipped, "it was stopped", ""
	case dispatcher.ClassUpstream:
		return d.broken(p, o)
	}
	if o.HTML {
		return d.broken(p, o)
	}
	return Fail, "the request is refused" + detail, "look at " + setting + ".url, .dialect and .patch: the server speaks another protocol, or refuses what is set there"
}

// broken says what it means that no usable answer came.
func (d *doctor) broken(p config.Provider, o dispatcher.Outcome) (state State, found, do string) {
	setting := "providers." + p.ID + ".url"
	switch {
	case o.HTML:
		return Fail, fmt.Sprintf("it answers with a web page (http %d)", o.Status), "mend " + setting + ": it leads to a page, not to the API; the path of the version, such as /v1, may be missing"
	case strings.Contains(o.Reason, "timeout"):
		return Fail, "no whole answer after " + span(o.Took), "try again with a larger --timeout; if that is no help, look at the provider's status page"
	case o.Reason == "truncated", o.Reason == "connection closed", o.Reason == "connection reset":
		return Fail, "the answer broke off (" + o.Reason + ")", "look at what is between here and the provider, and at the log of a server of your own; the gateway goes on with another upstream"
	case o.Reason == "no json", o.Reason == "no list of models", o.Reason == "empty answer":
		return Fail, "what comes is no answer of an API (" + o.Reason + ")", "mend " + setting + " or .dialect: another kind of server is there"
	case o.Status/100 == 5:
		return Fail, "the provider fails (" + o.Reason + ")", "look at the provider's status page, or the log of a server of your own, and try again"
	}
	return Fail, "no usable answer (" + o.Reason + ")", "try again, and look at the provider's status page"
}

// models says whether the provider has the models of the configuration.
func (d *doctor) models(name string, found dispatcher.Examined) (rows []Row) {
	if !found.Listed {
		return []Row{{Check: name + ": models", State: Skipped, Found: "there is no list of models"}}
	}
	if len(found.Missing) == 0 {
		row := Row{Check: name + ": models", State: OK, Found: fmt.Sprintf("%d listed, those of the configuration among them", found.Models)}
		if found.Models == 0 {
			row.State, row.Do = Warn, "load or allow a model at the provider: none is there"
			row.Found = "the list is empty"
		}
		return []Row{row}
	}
	for _, m := range found.Missing {
		row := Row{
			Check: name + ": model " + m, State: Fail, Found: fmt.Sprintf("it is not among the %d that are listed", found.Models),
			Do: "mend the model of the upstream; GET /v1/models of the gateway lists what there is",
		}
		if slices.ContainsFunc(found.Answers, func(a dispatcher.ExaminedAnswer) bool {
			return a.Model == m && a.Outcome.Class == dispatcher.ClassSuccess
		}) {
			row.State, row.Found, row.Do = OK, "it is not listed, and answers", ""
		}
		rows = append(rows, row)
	}
	return rows
}

// answers says how models answered.
func (d *doctor) answers(name string, p config.Provider, found dispatcher.Examined) (rows []Row) {
	if len(found.Answers) == 0 {
		row := Row{Check: name + ": answer", State: Skipped, Found: "no key can be used, or there is no model to ask"}
		switch {
		case d.Questions == dispatcher.NoQuestions:
			row.Found = "not asked (--no-stream)"
		case config.Dialects[p.Dialect].Chooses:
			row.Found = "an agent is not asked: it might do what it is told"
		}
		return []Row{row}
	}
	for _, a := range found.Answers {
		row := Row{Check: name + ": answer of " + a.Model}
		row.State, row.Found, row.Do = d.judge(p, a.Outcome)
		switch {
		case a.Outcome.Class == dispatcher.ClassModel:
			row.Found, row.Do = "it does not have the model ("+a.Outcome.Reason+")", "mend the model of the upstream, or allow it for the account"
		case a.Outcome.Class == dispatcher.ClassUpstream && p.Agent() && strings.Contains(a.Outcome.Reason, "timeout"):
			row.State, row.Do = Warn, "the model may be loading: ask again, or with a larger --timeout"
		case a.Outcome.Class != dispatcher.ClassSuccess:
		case a.Whole:
			row.State, row.Found = Warn, "it came in one piece after "+span(a.Outcome.Took)
			row.Do = "clients that stream see nothing before the end: look whether a proxy on the way collects streams"
		default:
			row.Found = "first piece after " + span(a.FirstByte) + ", whole after " + span(a.Outcome.Took)
			if a.Silent {
				row.Found += ", without text in 16 tokens"
			}
			if a.FirstByte > slowFirst {
				row.State, row.Do = Warn, "it is slow: put a faster upstream before it, or look at its load"
			}
		}
		rows = append(rows, row)
	}
	return rows
}
