package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"hydrallm/shared/config"
	"hydrallm/shared/fault"
	"hydrallm/shared/openai"
	"hydrallm/shared/query"
)

// Paths of settings that admin routes have names or routes of their own for.
const (
	settingLocale  = "server.locale"
	settingCommLog = "log.communication"
	settingEnabled = "server.enabled_models"
)

// shortNames are those of R-330 for settings that may be changed by them. Its others are only shown.
var shortNames = map[string]string{"locale": settingLocale, "debug_comm_log": settingCommLog}

// maxSettings bounds a body with settings, and with it what is stored, in bytes: all of it fits into one message.
const maxSettings = 256 << 10

// settingsNow is what GET /v1/admin/settings shows: the settings of R-330 by their names there, and all live settings with where they come from.
type settingsNow struct {
	RetentionDays int                  `json:"session_retention_days"`
	MaxTokensFast int                  `json:"max_tokens_fast_model"`
	Priority      []string             `json:"provider_priority"`
	Locale        string               `json:"locale"`
	CommLog       bool                 `json:"debug_comm_log"`
	Settings      []config.LiveSetting `json:"settings"`
}

func showSettings(x *exchange) error {
	c := x.api.Settings.Config()
	return showJSON(x, settingsNow{
		RetentionDays: c.Sessions.RetentionDays, MaxTokensFast: c.Routing.MaxTokensFast, Priority: append([]string{}, c.Routing.Priority...),
		Locale: c.Server.Locale, CommLog: c.Log.Communication, Settings: c.Live(),
	})
}

// settingsChanged is what PUT /v1/admin/settings answers.
type settingsChanged struct {
	Status  string         `json:"status"`
	Changed map[string]any `json:"changed"` // the values in force, as they were named in the request
}

// changeSettings stores values of live settings: all that the body has, or none when one of them is wrong. null has the file count again.
func changeSettings(x *exchange) error {
	members, err := x.object(maxSettings)
	if err != nil {
		return err
	}
	values := map[string]json.RawMessage{}
	for name, value := range members {
		path := name
		if long, ok := shortNames[name]; ok {
			path = long
		}
		if _, twice := values[path]; twice {
			return invalid(name, openai.CodeDuplicate, "'"+path+"' is given more than once")
		}
		values[path] = value
	}
	if err := x.api.store(values); err != nil {
		return err
	}
	now := map[string]any{}
	for _, s := range x.api.Settings.Config().Live() {
		if _, given := values[s.Name]; given {
			now[s.Name] = s.Value
		}
	}
	changed := map[string]any{}
	for name := range members {
		path := name
		if long, ok := shortNames[name]; ok {
			path = long
		}
		changed[name] = now[path]
	}
	x.note("changed", changed)
	return showJSON(x, settingsChanged{Status: query.Success, Changed: changed})
}

// appliedLimit bounds the wait for a change to reach this process.
const appliedLimit = 5 * time.Second

// store checks and stores values of live settings, null for none, and returns when they are in force here.
func (a *API) store(values map[string]json.RawMessage) error {
	change := query.ChangedSettings{Set: map[string]query.Document{}}
	set := map[string]json.RawMessage{}
	for path, value := range values {
		if bytes.Equal(value, []byte("null")) {
			change.Clear = append(change.Clear, path)
			continue
		}
		change.Set[path], set[path] = query.Document(value), value
	}
	slices.Sort(change.Clear)
	base := a.Settings.File()
	if _, wrong := base.With(set); len(wrong) > 0 {
		return invalid(wrong[0].Path, openai.CodeInvalidValue, "'"+shown(wrong[0].Path)+"' "+wrong[0].Message)
	}
	for _, path := range change.Clear {
		if !slices.ContainsFunc(base.Live(), func(s config.LiveSetting) bool { return s.Name == path }) {
			return invalid(path, openai.CodeInvalidValue, "'"+shown(path)+"' is no setting that can be changed while the gateway runs")
		}
	}
	all := a.Settings.Stored()
	if all == nil {
		all = map[string]json.RawMessage{}
	}
	maps.Copy(all, set)
	if text, err := json.Marshal(all); err != nil || len(text) > maxSettings {
		return fault.New(fault.TooLarge, "The settings are too large")
	}
	stored, err := query.PutSettings.Ask(a.Queries(), a.Bus, change)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(a.Queries(), appliedLimit)
	defer cancel()
	if err := a.Settings.Await(ctx, stored.Revision); err != nil {
		return &fault.Fault{Kind: fault.Unavailable, Message: "The settings are stored, but have not reached this ingress yet", RetryAfter: time.Second, Cause: err}
	}
	return nil
}

// onboarding is what the choice of models on the first day is about.
type onboarding struct {
	Completed bool     `json:"completed"` // somebody has chosen
	Enabled   []string `json:"enabled_models"`
	Available []string `json:"available_models"`
}

func showOnboarding(x *exchange) error {
	c := x.api.Settings.Config()
	now := onboarding{Enabled: append([]string{}, c.Server.Enabled...), Available: x.api.Models.Discovered()}
	for _, s := range c.Live() {
		if s.Name == settingEnabled {
			now.Completed = s.Origin != config.ByDefault
		}
	}
	return showJSON(x, now)
}

// onboarded is what POST /v1/admin/onboarding answers.
type onboarded struct {
	Status  string   `json:"status"`
	Enabled []string `json:"enabled_models"`
}

// completeOnboarding stores which discovered models are listed.
func completeOnboarding(x *exchange) error {
	members, err := x.object(maxSettings)
	if err != nil {
		return err
	}
	models := members["enabled_models"]
	if err := json.Unmarshal(models, new([]string)); err != nil || models[0] != '[' {
		return invalid("enabled_models", openai.CodeInvalidType, "'enabled_models' must be an array of strings")
	}
	if err := x.api.store(map[string]json.RawMessage{settingEnabled: models}); err != nil {
		return err
	}
	return showJSON(x, onboarded{Status: query.Success, Enabled: append([]string{}, x.api.Settings.Config().Server.Enabled...)})
}

// object reads the members of a JSON object.
func (x *exchange) object(most int) (map[string]json.RawMessage, error) {
	body, err := x.api.smallBody(x, most)
	if err != nil {
		return nil, err
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(body, &members); err != nil || members == nil {
		return nil, invalid("", openai.CodeInvalidType, "The request body must be a JSON object")
	}
	return members, nil
}
