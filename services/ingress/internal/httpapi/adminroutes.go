package httpapi

import "hydrallm/shared/query"

// tool stands in a path for the name of one.
const tool = "{tool}"

// Methods of the routes of operators.
const (
	reads    = "GET"
	acts     = "POST"
	replaces = "PUT"
	changes  = "PATCH"
	removes  = "DELETE"
)

// adminRoutes are the routes of R-330, in their order there.
func adminRoutes() []adminRoute {
	return []adminRoute{
		{reads, "/stats", tell(query.GetStats, nothing)},
		{reads, "/dashboard", showDashboard},
		{reads, "/status", showStatus},
		{reads, "/logs", tell(query.GetLogs, logsOf)},
		{acts, "/logs/clear", tell(query.ClearLogs, nothing)},
		{reads, "/comm-logs", showCommLogs},
		{removes, "/comm-logs", clearCommLogs},
		{acts, "/refresh-models", tell(query.RefreshModels, nothing)},
		{acts, "/probe", tell(query.ProbeKeys, probeOf)},
		{acts, "/keys", addKeys},
		{reads, "/sessions", tell(query.ListSessions, sessionsOf)},
		{acts, "/sessions/new", tell(query.NewSession, nothing)},
		{removes, "/sessions/" + id, tell(query.DeleteSession, sessionOf)},
		{reads, "/sessions/" + id + "/messages", showMessages},
		{acts, "/sessions/cleanup", tell(query.CleanSessions, cleanupOf)},
		{acts, "/sessions/import", importSession},
		{reads, "/settings", showSettings},
		{replaces, "/settings", changeSettings},
		{reads, "/onboarding", showOnboarding},
		{acts, "/onboarding", completeOnboarding},
		{reads, "/install/status", showTools},
		{acts, "/install/" + tool, installTool},
		{reads, "/intent/keywords", tell(query.GetKeywords, nothing)},
		{acts, "/intent/keywords", addKeywords},
		{acts, "/intent/keywords/learn", learnKeywords},
	}
}

// adminExtensions are routes that R-330 does not have. They are behind the same check.
func adminExtensions() []adminRoute {
	return []adminRoute{
		{reads, "/calls", tell(query.GetCalls, callsOf)},
		{reads, "/requests", tell(query.ListRequests, requestsOf)},
		{reads, "/timeline", tell(query.GetTimeline, timelineOf)},
		{reads, "/stream", streamNews},
		{acts, "/markdown", renderMarkdown},
		{removes, "/keys", removeKey},
		{acts, "/sessions/" + id + "/fork", forkSession},
		{reads, "/client-keys", listClientKeys},
		{acts, "/client-keys", makeClientKey},
		{changes, "/client-keys/" + id, changeClientKey},
		{acts, "/client-keys/" + id + "/rotate", rotateClientKey},
		{removes, "/client-keys/" + id, revokeClientKey},
		{acts, "/reload", reload},
		{reads, "/backup", sendBackup},
	}
}

// demoRoutes are there in a demo only.
func demoRoutes() []adminRoute {
	return []adminRoute{
		{reads, "/demo", showDemo},
		{acts, "/demo", changeDemo},
	}
}
