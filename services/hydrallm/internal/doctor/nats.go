package doctor

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"hydrallm/services/hydrallm/internal/natsrights"
	"hydrallm/shared/bus"
	"hydrallm/shared/topology"
)

// nats looks at the NATS server and at what the pipeline keeps on it.
func (d *doctor) nats(ctx context.Context) []Row {
	ctx, cancel := d.limited(ctx)
	defer cancel()
	settings, row := d.Settings, Row{Check: "NATS", State: Fail}
	if settings.NATS.URL == "" && settings.NATS.Listen == "" {
		row.State, row.Found = Skipped, "it is inside the gateway and takes no connections; the row \"gateway: ready\" says how it is"
		return []Row{row}
	}
	embedded := settings.NATS.URL == ""
	cfg := settings.Connection("")
	if embedded {
		cfg.URL = "nats://" + settings.NATS.Listen
	}
	found, err := bus.Examine(ctx, cfg, append([]string{"doctor"}, natsrights.Services()...)...)
	at := bus.Shown(cfg.URL)
	switch {
	case errors.Is(err, bus.ErrRights):
		row.Found, row.Do = at+": "+err.Error(), "run it with the nkey or credentials of one of the services"
	case err != nil && embedded:
		row.State, row.Found, row.Do = Skipped, at+": the embedded server does not listen", "start the gateway to see its streams"
	case err != nil:
		row.Found = at + ": " + err.Error()
		row.Do = "start the server, or mend nats.url and the files of nats.credentials, nats.nkey_seed_file and nats.ca"
	case found.JetStream != nil:
		row.Found, row.Do = at+": JetStream: "+found.JetStream.Error(), "start the server with -js, or enable JetStream for the account"
	default:
		row.State = OK
		row.Found = fmt.Sprintf("%s: version %s%s, JetStream answers in %s", at, found.Server, cluster(found.Cluster), span(found.RoundTrip))
		return append([]Row{row}, kept(found.Keeps, settings.NATS.Replicas)...)
	}
	return []Row{row}
}

func cluster(name string) string {
	if name == "" {
		return ""
	}
	return " of the cluster " + name
}

// kept sums up streams and buckets.
func kept(all []topology.Found, replicas int) (rows []Row) {
	var missing, silent, behind, differs []string
	var bytes uint64
	for _, f := range all {
		bytes += f.Bytes
		switch {
		case f.Missing:
			missing = append(missing, f.Name)
		case f.Err != nil:
			silent = append(silent, f.Name)
		case f.Behind > 0:
			behind = append(behind, f.Name)
		case f.Differs:
			differs = append(differs, f.Name)
		}
	}
	row := Row{Check: "NATS: streams and buckets", State: OK, Found: fmt.Sprintf("%d are there, %s", len(all), size(bytes))}
	switch {
	case len(missing) > 0 && len(missing)+len(silent) == len(all):
		row.Found = "none is there: the first start makes them"
	case len(missing) > 0:
		row.State, row.Found, row.Do = Fail, "missing: "+names(missing), "look at the log of the services: they make them every two seconds, and say why they can't"
	}
	rows = append(rows, row)
	if len(silent) > 0 {
		rows = append(rows, Row{
			Check: "NATS: leaders", State: Fail, Found: "nobody answers for " + names(silent),
			Do: "start the servers that are away: a stream needs most of its copies",
		})
	}
	if len(differs) > 0 {
		rows = append(rows, Row{
			Check: "NATS: differences", State: Warn, Found: "not as the configuration wants them: " + names(differs),
			Do: "restart the session-writer, which changes what can be changed; its log says what can't (\"topology drift\")",
		})
	}
	switch {
	case len(behind) > 0:
		rows = append(rows, Row{
			Check: "NATS: replicas", State: Warn, Found: "copies are away or behind: " + names(behind),
			Do: "start the servers that are away, and wait until they have caught up, before another one is stopped",
		})
	case replicas > 1 && len(missing) < len(all):
		rows = append(rows, Row{Check: "NATS: replicas", State: OK, Found: fmt.Sprintf("all %d copies are there", replicas)})
	}
	return rows
}

// names is a list, of which not more than some are shown.
func names(list []string) string {
	const most = 5
	if len(list) <= most {
		return strings.Join(list, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(list[:most], ", "), len(list)-most)
}
