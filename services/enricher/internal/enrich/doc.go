// Package enrich decides whether a request needs text from the web, has it fetched and searched for, and puts it into the request (R-240 to R-250,
// It calls no language model, and nothing that goes wrong in it fails a request.
package enrich
