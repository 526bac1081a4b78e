package httpapi

import (
	"context"
	"slices"
	"time"

	"hydrallm/shared/query"
)

// reloaded is what POST /v1/admin/reload answers.
type reloaded struct {
	Status    string             `json:"status"` // Success, or "refused" when a service has taken over nothing
	Instances []reloadedInstance `json:"instances"`
}

type reloadedInstance struct {
	ID string `json:"id"`
	query.Reloaded

	Error string `json:"error,omitempty"` // why there is no answer
}

// listLimit bounds the look for services.
const listLimit = 10 * time.Second

// reload has every service of every process read its configuration file again.
func reload(x *exchange) error {
	a := x.api
	x.leaveBody()
	ctx, cancel := context.WithTimeout(a.Queries(), listLimit)
	defer cancel()
	ids, err := a.Instances(ctx)
	if err != nil {
		return err
	}
	slices.Sort(ids)
	all := reloaded{Status: query.Success, Instances: []reloadedInstance{}}
	for _, r := range query.Reload.AskEach(a.Queries(), a.Bus, ids, query.None{}) {
		i := reloadedInstance{ID: r.Instance, Reloaded: r.Answer}
		if r.Err != nil {
			i.Error = r.Err.Error()
			i.Applied, i.Restart = []string{}, []string{}
		}
		if r.Err != nil || len(i.Refused) > 0 {
			all.Status = "refused"
		}
		all.Instances = append(all.Instances, i)
	}
	x.note("reload", all.Status)
	return showJSON(x, all)
}
