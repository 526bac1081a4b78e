// Package discover finds out which models providers offer (R-094..R-096). List asks one provider, in its own dialect, and doubles as the
// probe of a key; Classify says what routing may do with what was found; a Runner asks all providers in the background and
// publishes what they said.
package discover
